// SPDX-License-Identifier: BSD-3-Clause
#include <etx/failure.h>
#include <etx/platform.h>

namespace etx {

Error report(FailureSink* sink, const Failure& failure) {
  if (sink != nullptr) {
    sink->report(failure);
  } else {
    const char* reason = failure.reason == nullptr ? "failed" : failure.reason;
    etx_pal_log(ETX_LOG_ERROR, reason, failure.name);
  }
  return failure.error;
}

}  // namespace etx
