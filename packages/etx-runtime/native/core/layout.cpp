// SPDX-License-Identifier: BSD-3-Clause
#include "layout.h"

namespace etx {
namespace {

constexpr uint16_t kSizes[Layout::kNumParts] = {sizeof(MethodState),
                                                sizeof(EValue),
                                                sizeof(Instruction),
                                                sizeof(Port),
                                                sizeof(Port),
                                                sizeof(Rebind),
                                                sizeof(etx_kernel*),
                                                sizeof(Delegate),
                                                sizeof(TensorImpl),
                                                sizeof(int64_t),
                                                sizeof(etx_int_list),
                                                sizeof(etx_value*),
                                                sizeof(etx_compile_spec),
                                                sizeof(int32_t),
                                                sizeof(uint8_t)};

/// More than any allocator has, with room for the alignment; a multiple of 8.
constexpr size_t kMost = SIZE_MAX - 63;

}  // namespace

Layout::Layout(const fbs::ExecutionPlan& plan) {
  counts[kState] = 1;
  counts[kValues] = counts[kFlags] = length(plan.values());
  counts[kInputs] = length(plan.inputs());
  counts[kOutputs] = length(plan.outputs());
  counts[kKernels] = length(plan.operators());
  counts[kDelegates] = length(plan.delegates());
  for (size_t i = 0; i < counts[kValues]; ++i) {
    const fbs::EValue& value = value_at(plan, i);
    const fbs::Tensor* tensor = as_tensor(value);
    const size_t items = length(contents_of(value));
    const fbs::KernelTypes kind = value.val_type();
    if (tensor != nullptr) {
      ++counts[kTensors];
      counts[kDims] += kept_dims(length(tensor->sizes()), is_dynamic(*tensor));
      counts[kRebinds] += is_unbound(*tensor) ? 1 : 0;
    } else if (kind == fbs::KernelTypes::IntList) {
      ++counts[kIntLists];
      counts[kItems] += items;
      counts[kSlots] += items;
    } else if (kind >= fbs::KernelTypes::TensorList) {
      counts[kSlots] += items;
    }
  }
  const auto* code = instructions_of(plan);
  counts[kInstructions] = length(code);
  size_t most_args = 0;
  for (size_t i = 0; i < counts[kInstructions]; ++i) {
    const Call call = call_at(code, i);
    const size_t args = call.is_call() ? length(call.args) : 2;
    const size_t kept = kKeepsArguments ? most_args + args : args;
    if (kept > most_args) most_args = kept;
    has_free |= call.kind == fbs::InstructionArguments::FreeCall;
  }
  counts[kSlots] += most_args;
  for (size_t i = 0; i < counts[kDelegates]; ++i) {
    counts[kSpecs] += length(at(plan.delegates(), i).compile_specs());
  }
  if (has_free) counts[kRebinds] = counts[kTensors];
}

size_t Layout::bytes(Part part) const { return (counts[part] * kSizes[part] + 7) & ~size_t{7}; }

size_t Layout::total_bytes() const {
  size_t total = 0;
  for (size_t i = 0; i < kNumParts; ++i) {
    if (counts[i] > (kMost - total) / kSizes[i]) return kMost;
    total += bytes(static_cast<Part>(i));
  }
  return total;
}

}  // namespace etx
