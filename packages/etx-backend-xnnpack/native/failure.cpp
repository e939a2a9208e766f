// SPDX-License-Identifier: BSD-3-Clause
#include "failure.h"

#include <cstdarg>
#include <cstdio>

namespace etx::xnnpack {
namespace {
thread_local char reason[320];
}

Error fail(Error error, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(reason, sizeof(reason), format, arguments);
  va_end(arguments);
  return error;
}

const char* last_reason() { return reason; }

}  // namespace etx::xnnpack
