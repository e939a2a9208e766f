// SPDX-License-Identifier: BSD-3-Clause
#include "call.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ScalarOps.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <etx/aten.h>
#include <etx/value.h>

#include "failure.h"
#include "forked.h"
#include "operation.h"

namespace etx::aten {
namespace {

struct Range {
  const char* begin;
  const char* end;
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

Range range_of(const etx_tensor& tensor) {
  const auto* begin = static_cast<const char*>(tensor.data);
  return {begin, begin + Tensor(const_cast<etx_tensor*>(&tensor)).nbytes()};
}

bool same_layout(const etx_tensor& a, const etx_tensor& b) {
  if (a.data != b.data || a.dtype != b.dtype || a.rank != b.rank) return false;
  for (uint8_t d = 0; d < a.rank; ++d) {
    if (a.sizes[d] != b.sizes[d] || a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

/// Room for a result whose sizes follow: as large as was planned, with no elements yet.
at::Tensor room(const etx_tensor& tensor) {
  const auto type = static_cast<ScalarType>(tensor.dtype);
  const size_t nbytes = static_cast<size_t>(tensor.capacity) * element_size(type);
  return detail::on_storage(detail::fixed_storage(tensor.data, nbytes, nullptr), to_aten(type), {0},
                            {1});
}

/// A result and the memory that is planned for it.
struct Out {
  at::Tensor tensor;
  etx_tensor* planned;
};

class Call {
 public:
  Call(const Kernel& kernel, etx_value* const* args, size_t num_args)
      : kernel_(kernel), operation_(kernel.operation()), args_(args), num_args_(num_args) {}

  void run() {
    check_count();
    for (size_t i = 0; i < operation_.parameters.size(); ++i) push(i);
    operation_.handle.callBoxed(&stack_);
    if (kernel_.is_functional) {
      take_results();
    } else {
      for (const Out& out : outs_) store(out.tensor, *out.planned);
    }
  }

 private:
  void check_count() const {
    const size_t count = operation_.parameters.size();
    const size_t least = count + (kernel_.is_functional ? operation_.num_returns : 0);
    TORCH_CHECK(num_args_ >= least, "the program gives ", num_args_,
                " arguments, too few for torch's ", operation_.schema, "; export it again");
  }

  [[noreturn]] void refuse(size_t index) const {
    const c10::Argument& argument = operation_.handle.schema().arguments()[index];
    TORCH_CHECK(false, "argument '", argument.name(), "' is not of the kind that torch's ",
                operation_.schema, " takes (", argument.type()->annotation_str(), ")");
  }

  void push(size_t index) {
    const Parameter& parameter = operation_.parameters[index];
    const EValue& value = *static_cast<const EValue*>(args_[index]);
    if (value.is_none()) {
      if (parameter.is_optional) {
        stack_.emplace_back();
      } else if (parameter.kind == Kind::Device) {
        stack_.emplace_back(c10::Device(c10::kCPU));
      } else {
        refuse(index);
      }
      return;
    }
    switch (parameter.kind) {
      case Kind::Tensor:
      case Kind::TensorList:
      case Kind::OptionalTensorList: push_tensors(index, parameter, value); break;
      default: push_number(index, parameter.kind, value);
    }
  }

  void push_number(size_t index, Kind kind, const EValue& value) {
    const Tag tag = value.tag();
    if (kind == Kind::Int && tag == Tag::Int) {
      stack_.emplace_back(value.to_int());
    } else if (kind == Kind::Float && (tag == Tag::Double || tag == Tag::Int)) {
      stack_.emplace_back(value.to_double());
    } else if (kind == Kind::Bool && tag == Tag::Bool) {
      stack_.emplace_back(value.to_bool());
    } else if (kind == Kind::Number && value.is_scalar()) {
      stack_.emplace_back(number(value));
    } else if (kind == Kind::String && tag == Tag::String) {
      stack_.emplace_back(std::string(value.to_string_view()));
    } else {
      push_list(index, kind, value);
    }
  }

  /// A number where a tensor is expected, which does not widen the dtype of the others.
  static at::Tensor wrapped(const EValue& value) {
    at::Tensor made = c10::scalar_to_tensor(number(value).toScalar());
    made.unsafeGetTensorImpl()->set_wrapped_number(true);
    return made;
  }

  static c10::IValue number(const EValue& value) {
    if (value.is_int()) return value.to_int();
    if (value.is_bool()) return value.to_bool();
    return value.to_double();
  }

  void push_list(size_t index, Kind kind, const EValue& value) {
    const Tag tag = value.tag();
    if (kind == Kind::IntList && tag == Tag::ListInt) {
      const IntList items = value.to_int_list();
      stack_.emplace_back(c10::IntArrayRef(items.data(), items.size()));
    } else if (kind == Kind::FloatList && tag == Tag::ListDouble) {
      const DoubleList items = value.to_double_list();
      stack_.emplace_back(c10::ArrayRef<double>(items.data(), items.size()));
    } else if (kind == Kind::BoolList && tag == Tag::ListBool) {
      const BoolList items = value.to_bool_list();
      c10::List<bool> list;
      for (size_t i = 0; i < items.size(); ++i) list.push_back(items[i]);
      stack_.emplace_back(std::move(list));
    } else if (kind == Kind::NumberList && (tag == Tag::ListInt || tag == Tag::ListDouble)) {
      c10::List<at::Scalar> list;
      for (uint32_t i = 0; i < value.count; ++i) {
        list.push_back(tag == Tag::ListInt ? at::Scalar(value.to_int_list()[i])
                                           : at::Scalar(value.to_double_list()[i]));
      }
      stack_.emplace_back(std::move(list));
    } else {
      refuse(index);
    }
  }

  void push_tensors(size_t index, const Parameter& parameter, const EValue& value) {
    const bool is_list = value.tag() == Tag::ListTensor || value.tag() == Tag::ListOptionalTensor;
    if (parameter.kind == Kind::Tensor) {
      if (value.is_scalar() && !parameter.is_written) {
        stack_.emplace_back(wrapped(value));
        return;
      }
      if (!value.is_tensor()) refuse(index);
      stack_.emplace_back(given(*value.payload.as_tensor, parameter));
      return;
    }
    if (!is_list) refuse(index);
    if (parameter.kind == Kind::TensorList) {
      c10::List<at::Tensor> list;
      for (uint32_t i = 0; i < value.count; ++i) {
        const etx_value* const item = value.payload.as_tensor_list[i];
        if (item == nullptr || item->tag != ETX_TAG_TENSOR) refuse(index);
        list.push_back(given(*item->payload.as_tensor, parameter));
      }
      stack_.emplace_back(std::move(list));
      return;
    }
    c10::List<std::optional<at::Tensor>> list;
    for (uint32_t i = 0; i < value.count; ++i) {
      const etx_value* const item = value.payload.as_tensor_list[i];
      const bool is_there = item != nullptr && item->tag == ETX_TAG_TENSOR;
      list.push_back(is_there ? std::optional(given(*item->payload.as_tensor, parameter))
                              : std::nullopt);
    }
    stack_.emplace_back(std::move(list));
  }

  at::Tensor given(etx_tensor& tensor, const Parameter& parameter) {
    if (!parameter.is_written) return wrap(tensor);
    TORCH_CHECK((tensor.flags & ETX_TENSOR_CONSTANT) == 0,
                "the operator would write to a constant of the program; export it again");
    at::Tensor made = !parameter.is_out ? wrap(tensor) : out_of(tensor);
    outs_.push_back({made, &tensor});
    return made;
  }

  /// What the operator gets to write a result into: the planned memory, unless it reads that.
  at::Tensor out_of(const etx_tensor& tensor) const {
    const auto type = to_aten(static_cast<ScalarType>(tensor.dtype));
    if (is_read(tensor)) return at::detail::empty_cpu({0}, type);
    return tensor.dynamism == static_cast<uint8_t>(TensorShapeDynamism::Static) ? wrap(tensor)
                                                                                : room(tensor);
  }

  /// True when an argument has bytes of `out` that the operator might read after it wrote them.
  bool is_read(const etx_tensor& out) const {
    const Range written = range_of(out);
    for (size_t i = 0; i < operation_.parameters.size(); ++i) {
      if (operation_.parameters[i].is_written) continue;
      const etx_value& value = *args_[i];
      if (value.tag == ETX_TAG_TENSOR && is_hit(*value.payload.as_tensor, out, written)) {
        return true;
      }
      if (value.tag != ETX_TAG_LIST_TENSOR && value.tag != ETX_TAG_LIST_OPTIONAL_TENSOR) continue;
      for (uint32_t k = 0; k < value.count; ++k) {
        const etx_value* const item = value.payload.as_tensor_list[k];
        const bool is_there = item != nullptr && item->tag == ETX_TAG_TENSOR;
        if (is_there && is_hit(*item->payload.as_tensor, out, written)) return true;
      }
    }
    return false;
  }

  bool is_hit(const etx_tensor& in, const etx_tensor& out, const Range& written) const {
    if (!range_of(in).overlaps(written)) return false;
    return !operation_.is_pointwise || !same_layout(in, out);
  }

  /// Copies what the operator returned into the tensors that follow its arguments.
  void take_results() {
    size_t next = operation_.parameters.size();
    for (const c10::IValue& value : stack_) {
      if (value.isTensor()) {
        take(value.toTensor(), next++);
      } else if (value.isTensorList()) {
        for (const at::Tensor& item : value.toTensorVector()) take(item, next++);
      } else {
        TORCH_CHECK(false, "torch's ", operation_.schema, " returned a ", value.tagKind(),
                    ", expected tensors");
      }
    }
  }

  void take(const at::Tensor& result, size_t index) {
    TORCH_CHECK(index < num_args_ && args_[index]->tag == ETX_TAG_TENSOR, "torch's ",
                operation_.schema, " returned more tensors than the program takes");
    etx_tensor& out = *args_[index]->payload.as_tensor;
    TORCH_CHECK((out.flags & ETX_TENSOR_CONSTANT) == 0,
                "the result would be written to a constant of the program; export it again");
    store(result, out);
  }

  const Kernel& kernel_;
  const Operation& operation_;
  etx_value* const* args_;
  size_t num_args_;
  torch::jit::Stack stack_;
  c10::SmallVector<Out, 3> outs_;
};

bool has_strides(const at::Tensor& tensor, const etx_tensor& out) {
  for (uint8_t d = 0; d < out.rank; ++d) {
    if (out.sizes[d] != 1 && tensor.stride(d) != out.strides[d]) return false;
  }
  return true;
}

}  // namespace

at::Tensor wrap(const etx_tensor& tensor) {
  return share_with_aten(Tensor(const_cast<etx_tensor*>(&tensor)));
}

void store(const at::Tensor& result, etx_tensor& out) {
  const auto type = static_cast<ScalarType>(out.dtype);
  if (!result.defined()) {
    TORCH_CHECK(out.numel == 0, "torch returned no tensor, the program takes one");
    return;
  }
  TORCH_CHECK(result.scalar_type() == to_aten(type), "torch returned ",
              to_string(to_etx(result.scalar_type())), ", the program takes ", to_string(type));
  const bool fits = Tensor(&out).resize(Span<const int64_t>(result.sizes().data(),
                                                            result.sizes().size())) == Error::Ok;
  TORCH_CHECK(fits, "torch's result has sizes ", result.sizes(), ", for which the program has no ",
              "room: planned are up to ", out.capacity, " elements in ", unsigned{out.rank},
              " dimensions; export it with larger bounds");
  if (out.numel == 0) return;
  const bool is_there = result.layout() == c10::kStrided && result.device().is_cpu() &&
                        !result.is_conj() && !result.is_neg() && has_strides(result, out) &&
                        result.const_data_ptr() == out.data;
  if (is_there) return;
  const Range written = range_of(out);
  const auto* const begin = static_cast<const char*>(result.storage().data());
  const bool overlaps = Range{begin, begin + result.storage().nbytes()}.overlaps(written);
  wrap(out).copy_(overlaps ? result.clone() : result);
}

etx_status run(etx_context* context, etx_value* const* args) {
  try {
    leave_pool_of_parent();
    const c10::InferenceMode guard;
    Call(static_cast<const Kernel&>(*context->kernel), args, context->num_args).run();
    return 0;
  } catch (...) {
    return fail_with_exception(context);
  }
}

}  // namespace etx::aten
