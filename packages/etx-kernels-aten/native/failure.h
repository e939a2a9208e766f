// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_ATEN_FAILURE_H_
#define ETX_ATEN_FAILURE_H_

#include <string>

#include <etx/abi.h>
#include <etx/error.h>

namespace etx::aten {

/// Reports `text` as the reason of a failure. The runtime keeps only a pointer: the last 256 texts
/// of the process stay as they are, and memory that was one of them stays readable.
etx_status fail(etx_context* context, Error error, const std::string& text);

/// Reports the exception that is being handled.
etx_status fail_with_exception(etx_context* context);

}  // namespace etx::aten

#endif  // ETX_ATEN_FAILURE_H_
