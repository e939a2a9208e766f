// SPDX-License-Identifier: BSD-3-Clause
#include "operation.h"

#include <mutex>

#include <c10/util/Exception.h>

#include "call.h"

namespace etx::aten {
namespace {

std::atomic<uint64_t> generation{1};

class Listener final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle&) override { ++generation; }
  void onOperatorDeregistered(const c10::OperatorHandle&) override { ++generation; }
};

Kind kind_in_list(const c10::Type& item) {
  switch (item.kind()) {
    case c10::TypeKind::TensorType: return Kind::TensorList;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return Kind::IntList;
    case c10::TypeKind::FloatType: return Kind::FloatList;
    case c10::TypeKind::BoolType: return Kind::BoolList;
    case c10::TypeKind::NumberType: return Kind::NumberList;
    case c10::TypeKind::OptionalType:
      return item.castRaw<c10::OptionalType>()->getElementType()->kind() ==
                     c10::TypeKind::TensorType
                 ? Kind::OptionalTensorList
                 : Kind::Other;
    default: return Kind::Other;
  }
}

Kind kind_of(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType: return Kind::Tensor;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return Kind::Int;
    case c10::TypeKind::FloatType: return Kind::Float;
    case c10::TypeKind::BoolType: return Kind::Bool;
    case c10::TypeKind::NumberType: return Kind::Number;
    case c10::TypeKind::StringType: return Kind::String;
    case c10::TypeKind::DeviceObjType: return Kind::Device;
    case c10::TypeKind::ListType:
      return kind_in_list(*type.castRaw<c10::ListType>()->getElementType());
    default: return Kind::Other;
  }
}

Parameter describe(const c10::Argument& argument) {
  c10::TypePtr type = argument.type();
  const bool is_optional = type->kind() == c10::TypeKind::OptionalType;
  if (is_optional) type = type->castRaw<c10::OptionalType>()->getElementType();
  const bool is_written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  return {kind_of(*type), is_optional, is_written, argument.is_out()};
}

}  // namespace

uint64_t registry_generation() {
  static const c10::RegistrationHandleRAII& kept = *new c10::RegistrationHandleRAII(
      c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Listener>()));
  static_cast<void>(kept);
  return generation.load(std::memory_order_acquire);
}

Kernel::Kernel(std::string registered_, c10::OperatorName target_, bool is_functional_)
    : etx_kernel{nullptr, aten::run, "*", 0},
      registered(std::move(registered_)),
      target(std::move(target_)),
      is_functional(is_functional_) {
  name = registered.c_str();
}

const Operation& Kernel::operation() const {
  const uint64_t now = generation.load(std::memory_order_acquire);
  if (generation_.load(std::memory_order_acquire) == now) {
    return *found_.load(std::memory_order_relaxed);
  }
  return find(now);
}

const Operation& Kernel::find(uint64_t now) const {
  static std::mutex& mutex = *new std::mutex();
  const std::lock_guard<std::mutex> lock(mutex);
  auto handle = c10::Dispatcher::singleton().findSchema(target);
  TORCH_CHECK(handle.has_value(), "torch has no operator ", c10::toString(target),
              " any more; import what registers it, and load again");
  const Operation* const before = found_.load(std::memory_order_relaxed);
  std::string schema = c10::toString(handle->schema());
  TORCH_CHECK(before == nullptr || before->schema == schema, "the operator's schema changed from ",
              before == nullptr ? "" : before->schema, " to ", schema,
              "; export the program again");
  auto* made = new Operation{*handle, std::move(schema), {}, 0, false};
  for (const c10::Argument& argument : handle->schema().arguments()) {
    made->parameters.push_back(describe(argument));
  }
  made->num_returns = handle->schema().returns().size();
  made->is_pointwise = handle->hasTag(at::Tag::pointwise);
  found_.store(made, std::memory_order_relaxed);
  generation_.store(now, std::memory_order_release);
  return *made;
}

}  // namespace etx::aten
