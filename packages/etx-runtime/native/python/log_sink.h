// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_PYTHON_LOG_SINK_H_
#define ETX_NATIVE_PYTHON_LOG_SINK_H_

#include <nanobind/nanobind.h>

namespace etx {
namespace python {

/// Sends the log to `sink(level, message)`, or with None to stderr. What it raises is reported and
/// dropped.
void set_sink(nanobind::object sink);

}  // namespace python
}  // namespace etx

#endif  // ETX_NATIVE_PYTHON_LOG_SINK_H_
