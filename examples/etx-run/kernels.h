// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_EXAMPLES_KERNELS_H_
#define ETX_EXAMPLES_KERNELS_H_

#include <etx/registry.h>

extern "C" const etx_plugin* etx_plugin_etx_kernels_portable(void);
extern "C" const etx_plugin* etx_plugin_backend_xnnpack(void);

namespace etx_run {

/// The kernels and the delegate that this build was given.
inline etx::Registry kernels() {
  static const etx_plugin* plugins[2];
  size_t count = 0;
  plugins[count++] = etx_plugin_etx_kernels_portable();
#ifdef ETX_RUN_XNNPACK
  plugins[count++] = etx_plugin_backend_xnnpack();
#endif
  return etx::Registry(etx::Span<const etx_plugin* const>(plugins, count));
}

}  // namespace etx_run

#endif  // ETX_EXAMPLES_KERNELS_H_
