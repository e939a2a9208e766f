// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_OPTIONS_H_
#define ETX_XNNPACK_OPTIONS_H_

#include <etx/abi.h>

#include "workspace.h"

namespace etx::xnnpack {

/// What a user may choose of a delegate.
struct Options {
  Sharing sharing = Sharing::Method;
  /// Where packed weights are kept as files; null: nowhere.
  const char* weight_cache = nullptr;
  uint64_t weight_cache_limit = uint64_t{4} << 30;
  bool must_verify_weights = false;
  /// False: nowhere, whatever `weight_cache` says.
  bool keeps_weights = true;
  /// Weights larger than the cache of a core are read in panels.
  bool has_weight_panels = true;
};

/// `workspace` is a compile spec, before it the environment's ETX_XNNPACK_WORKSPACE; the other
/// options are those of the environment: ETX_XNNPACK_WEIGHT_CACHE (a folder),
/// ETX_XNNPACK_WEIGHT_CACHE_LIMIT (megabytes), ETX_XNNPACK_WEIGHT_CACHE_VERIFY (0 or 1). Before
/// all of them are the options of the load, whose texts live until init returns.
/// Errors: InvalidArgument (the message says what was given and what was expected).
Error read_options(const etx_init_context& context, const etx_compile_spec* specs, size_t num_specs,
                   Options* options);

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_OPTIONS_H_
