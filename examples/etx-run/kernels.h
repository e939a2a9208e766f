// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_EXAMPLES_KERNELS_H_
#define ETX_EXAMPLES_KERNELS_H_

#include <etx/registry.h>

extern "C" const etx_plugin* etx_plugin_etx_kernels_portable(void);

namespace etx_run {

/// The kernels that this build was given.
inline etx::Registry kernels() {
  static const etx_plugin* plugins[1];
  plugins[0] = etx_plugin_etx_kernels_portable();
  return etx::Registry(etx::Span<const etx_plugin* const>(plugins, 1));
}

}  // namespace etx_run

#endif  // ETX_EXAMPLES_KERNELS_H_
