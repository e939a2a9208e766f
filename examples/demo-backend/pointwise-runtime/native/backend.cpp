// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include <etx/plugin.h>
#include <etx/tensor.h>
#include <etx/value.h>

#include "code.h"

namespace pointwise {
namespace {
using etx::Error, etx::EValue, etx::ScalarType, etx::Span, etx::Tensor;

constexpr int64_t kDefaultBlock = 256;
constexpr int64_t kLeastBlock = 16;
constexpr int64_t kMostBlock = 4096;
constexpr int64_t kGrain = 1 << 15;

etx_status status(Error error) { return static_cast<etx_status>(error); }

/// Reads `block=<16..4096>` in decimal; returns false for anything else.
bool read_spec(const etx_compile_spec& spec, int64_t* block) {
  const auto* text = static_cast<const char*>(spec.value);
  if (std::strcmp(spec.key, "block") != 0 || spec.size == 0 || spec.size > 4) return false;
  int64_t value = 0;
  for (size_t i = 0; i < spec.size; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    value = value * 10 + (text[i] - '0');
  }
  *block = value;
  return value >= kLeastBlock && value <= kMostBlock;
}

etx_status init(const etx_backend*, etx_init_context* context, const void* blob, size_t size,
                const etx_compile_spec* specs, size_t num_specs, void** handle) {
  int64_t block = kDefaultBlock;
  for (size_t i = 0; i < num_specs; ++i) {
    if (!read_spec(specs[i], &block)) {
      return context->fail(context, status(Error::DelegateInvalidCompatibility),
                           "a compile spec is not block=<16 to 4096>");
    }
  }
  Code* code = nullptr;
  const etx_status parsed = parse(context, blob, size, block, &code);
  *handle = code;
  return parsed;
}

bool is_float(const etx_value& value) {
  return value.tag == ETX_TAG_TENSOR &&
         value.payload.as_tensor->dtype == static_cast<int8_t>(ScalarType::Float) &&
         Tensor(value.payload.as_tensor).is_contiguous();
}

Tensor tensor(etx_value* value) { return static_cast<EValue*>(value)->to_tensor(); }

/// Returns why the arguments do not fit the code, or null; the outputs get their sizes.
const char* bind(const Code& code, etx_value* const* args, const float** inputs, float** outputs) {
  for (size_t i = 0; i < size_t{code.inputs} + code.outputs; ++i) {
    if (!is_float(*args[i])) return "an argument is not a contiguous float tensor";
  }
  const Tensor whole = tensor(args[code.shape_of]);
  for (size_t i = 0; i < code.inputs; ++i) {
    inputs[i] = tensor(args[i]).const_data_ptr<float>();
  }
  for (size_t i = 0; i < code.instructions; ++i) {
    const Instruction& row = code.code[i];
    if (row.op == Op::Load && !etx::equal(tensor(args[row.a]).sizes(), whole.sizes())) {
      return "two inputs of the chain differ in shape";
    }
    if (row.op == Op::Splat && tensor(args[row.a]).numel() != 1) {
      return "an input of the chain is to be one number";
    }
    if (row.op == Op::Tensor && code.named[row.a].count != whole.numel()) {
      return "a stored tensor has another size than the input";
    }
  }
  for (size_t i = 0; i < code.outputs; ++i) {
    const Tensor out = tensor(args[code.inputs + i]);
    if ((out.impl()->flags & ETX_TENSOR_CONSTANT) != 0) return "an output is a constant";
    if (out.resize(whole.sizes()) != Error::Ok || out.numel() != whole.numel()) {
      return "an output cannot have the shape of the input";
    }
    outputs[i] = out.mutable_data_ptr<float>();
  }
  return nullptr;
}

struct Job {
  const Code* code;
  const float* const* inputs;
  float* const* outputs;
  float* scratch;
  int64_t elements;
  int64_t slices;
};

void run_slices(void* user, int64_t begin, int64_t end) {
  const Job& job = *static_cast<const Job*>(user);
  const int64_t each = (job.elements + job.slices - 1) / job.slices;
  for (int64_t slice = begin; slice < end; ++slice) {
    const int64_t first = slice * each;
    const int64_t last = first + each < job.elements ? first + each : job.elements;
    float* scratch = job.scratch + slice * job.code->registers * job.code->block;
    run(*job.code, job.inputs, job.outputs, scratch, first, last);
  }
}

etx_status execute(const etx_backend*, void* handle, etx_context* context, etx_value* const* args,
                   size_t num_args) {
  const Code& code = *static_cast<const Code*>(handle);
  if (num_args != size_t{code.inputs} + code.outputs) {
    return context->fail(context, status(Error::InvalidArgument),
                         "the call has another number of arguments than the blob says");
  }
  const float* inputs[kMost];
  float* outputs[kMost];
  const char* reason = bind(code, args, inputs, outputs);
  if (reason != nullptr) return context->fail(context, status(Error::InvalidArgument), reason);
  const int64_t elements = tensor(args[code.shape_of]).numel();
  if (elements == 0) return 0;
  int64_t slices = (elements + kGrain - 1) / kGrain;
  if (slices > context->num_threads) slices = context->num_threads;
  if (slices < 1 || context->parallel_for == nullptr) slices = 1;
  const auto floats = static_cast<size_t>(slices * code.registers * code.block);
  void* scratch = context->allocate_temp(context, floats * sizeof(float), 64);
  if (scratch == nullptr) {
    return context->fail(context, status(Error::MemoryAllocationFailed), "no scratch memory");
  }
  Job job{&code, inputs, outputs, static_cast<float*>(scratch), elements, slices};
  if (slices == 1) {
    run_slices(&job, 0, 1);
  } else {
    context->parallel_for(context, 0, slices, 1, run_slices, &job);
  }
  return 0;
}

bool is_available(const etx_backend*) { return true; }
void destroy(const etx_backend*, void*) {}

constexpr etx_backend kBackend = {
    sizeof(etx_backend), "PointwiseBackend", nullptr, is_available, init, execute, destroy};
constexpr const etx_backend* kBackends[] = {&kBackend};
constexpr Span<const etx_backend* const> kBackendSpan(kBackends);
constexpr Span<const etx_kernel_table* const> kNoTables;

}  // namespace
}  // namespace pointwise

ETX_PLUGIN(pointwise, "pointwise-runtime", "0.1.0", pointwise::kNoTables, pointwise::kBackendSpan)
