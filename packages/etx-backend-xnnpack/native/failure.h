// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_FAILURE_H_
#define ETX_XNNPACK_FAILURE_H_

#include <etx/error.h>

namespace etx::xnnpack {

/// Formats why a blob or a call is refused and returns `error`. The text stays until the next
/// failure of this thread.
[[gnu::format(printf, 2, 3)]] Error fail(Error error, const char* format, ...);

/// The text of this thread's last failure.
const char* last_reason();

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_FAILURE_H_
