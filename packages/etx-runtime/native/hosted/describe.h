// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_HOSTED_DESCRIBE_H_
#define ETX_NATIVE_HOSTED_DESCRIBE_H_

#include <string>
#include <vector>

#include <etx/failure.h>
#include <etx/hosted/module.h>

namespace etx {

/// `float32[2, 3]`; `<=` marks upper bounds.
std::string describe_tensor(ScalarType type, Span<const int32_t> sizes, bool bounds = false);
/// A tensor, or the value of a number or list.
std::string describe_value(const etx_value& value);
/// `1 input`, `2 inputs`.
std::string counted(size_t count, const char* noun);
/// `InvalidArgument (0x12)`.
std::string describe_error(Error error);

/// Collects what a load reports.
class MessageSink final : public FailureSink {
 public:
  ~MessageSink() = default;
  void report(const Failure& failure) override;
  /// All of it as one text; `error` when nothing was reported.
  ErrorText text(Error error) const;

 private:
  std::vector<std::pair<std::string, int32_t>> missing_;
  std::vector<ErrorText> others_;
};

/// The failure of an execution, with the arguments of its instruction.
ErrorText describe_execution(const Method& method, const Failure& failure);

}  // namespace etx

#endif  // ETX_NATIVE_HOSTED_DESCRIBE_H_
