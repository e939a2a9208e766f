// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_ATEN_OPERATION_H_
#define ETX_ATEN_OPERATION_H_

#include <atomic>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

#include <etx/abi.h>

namespace etx::aten {

/// The kinds of value that a schema's argument takes.
enum class Kind : uint8_t {
  Tensor,
  TensorList,
  OptionalTensorList,
  Int,
  Float,
  Bool,
  Number,
  String,
  Device,
  IntList,
  FloatList,
  BoolList,
  NumberList,
  Other,
};

struct Parameter {
  Kind kind;
  bool is_optional;
  /// The operator writes the tensor.
  bool is_written;
  /// It is a tensor, or a list of them, to hold a result.
  bool is_out;
};

/// An operator of torch's dispatcher, as it is called.
struct Operation {
  c10::OperatorHandle handle;
  std::string schema;
  std::vector<Parameter> parameters;
  size_t num_returns;
  /// Each element of the result follows from the elements at its place.
  bool is_pointwise;
};

/// A row of the plugin's table. Lives as long as the process.
struct Kernel : etx_kernel {
  Kernel(std::string registered_, c10::OperatorName target_, bool is_functional_);
  /// The name in programs; the operator is the one of this name or, where torch has no out variant,
  /// the functional one whose out variant would have it.
  const std::string registered;
  const c10::OperatorName target;
  const bool is_functional;

  /// The operator as it is now. Throws c10::Error where it is gone, or its schema is another than
  /// at the first call.
  const Operation& operation() const;

 private:
  const Operation& find(uint64_t now) const;
  mutable std::atomic<const Operation*> found_{nullptr};
  mutable std::atomic<uint64_t> generation_{0};
};

/// Counts what torch.library and the like register and take away.
uint64_t registry_generation();

}  // namespace etx::aten

#endif  // ETX_ATEN_OPERATION_H_
