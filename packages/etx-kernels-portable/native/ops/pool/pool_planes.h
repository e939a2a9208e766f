// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_POOL_PLANES_H_
#define ETX_PORTABLE_POOL_PLANES_H_

#include "ops/pool/pool_shape.h"

namespace etx::portable {

/// y = the largest of each window, -inf where it is empty; or the sum of each, 0 where it is empty,
/// divided by `counts`, one number for each window of `counted` planes, where these are given.
Error pool_planes(Context& context, const PoolShape& shape, bool is_max, const float* x,
                  const float* counts, int64_t counted, float* y);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_POOL_PLANES_H_
