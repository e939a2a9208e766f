// SPDX-License-Identifier: BSD-3-Clause
// The smallest complete application: what the code size budget is measured on.
#include <etx/kernel.h>
#include <etx/program.h>

namespace {

etx::Error relu_out(etx::Context&, const etx::Tensor& in, etx::Tensor& out) {
  ETX_TRY(out.resize(in.sizes()));
  for (etx::ssize_t i = 0; i < in.numel(); ++i) {
    const float x = in.const_data_ptr<float>()[i];
    out.mutable_data_ptr<float>()[i] = x > 0 ? x : 0;
  }
  return etx::Error::Ok;
}

constexpr etx_kernel kRows[] = {ETX_KERNEL("aten::relu.out", relu_out)};
constexpr etx_kernel_table kTable = {kRows, 1};
constexpr const etx_kernel_table* kTables[] = {&kTable};

alignas(16) uint8_t method_bytes[4096];
alignas(16) uint8_t planned_bytes[4096];
alignas(16) uint8_t temp_bytes[1024];

}  // namespace

extern "C" int run_model(const void* program_bytes, size_t size, float* values) {
  const etx::BufferDataLoader loader(program_bytes, size);
  auto program = etx::Program::load(&loader);
  if (!program.ok()) return static_cast<int>(program.error());
  etx::MemoryAllocator method_arena(sizeof(method_bytes), method_bytes);
  etx::MemoryAllocator temp_arena(sizeof(temp_bytes), temp_bytes);
  etx::Span<uint8_t> buffers[] = {planned_bytes};
  etx::HierarchicalAllocator planned{etx::Span<etx::Span<uint8_t>>(buffers)};
  etx::MemoryManager memory(&method_arena, &planned, &temp_arena);
  const etx::Registry registry{etx::Span<const etx_kernel_table* const>(kTables)};
  auto method = program->load_method("forward", &memory, registry);
  if (!method.ok()) return static_cast<int>(method.error());
  int32_t sizes[] = {1};
  int32_t strides[] = {1};
  const uint8_t order[] = {0};
  etx_tensor tensor = {};
  tensor.data = values;
  tensor.sizes = sizes;
  tensor.strides = strides;
  tensor.dim_order = order;
  tensor.numel = tensor.capacity = 1;
  tensor.dtype = 6;
  tensor.rank = 1;
  etx::Error error = method->set_input(etx::EValue(&tensor), 0);
  if (error == etx::Error::Ok) error = method->execute();
  if (error == etx::Error::Ok) {
    values[0] = method->get_output(0).to_tensor().const_data_ptr<float>()[0];
  }
  return static_cast<int>(error);
}

int main() { return run_model(planned_bytes, 0, nullptr); }
