// SPDX-License-Identifier: BSD-3-Clause
// one_image MODEL INPUT: the model's first output, from memory that is static, to standard output.
#include <etx/program.h>

#include <cstdio>

#include "../../kernels.h"

namespace {

alignas(16) uint8_t file[24 << 20], image[1 << 20], method_bytes[1 << 20], temp_bytes[32 << 20];
alignas(16) uint8_t planned_bytes[32 << 20];

size_t read(const char* path, uint8_t* into, size_t room) {
  std::FILE* const stream = std::fopen(path, "rb");
  const size_t size = stream == nullptr ? 0 : std::fread(into, 1, room, stream);
  if (stream != nullptr) std::fclose(stream);
  return size;
}

etx::Error run(size_t size) {
  const etx::BufferDataLoader loader(file, size);
  auto program = etx::Program::load(&loader);
  if (!program.ok()) return program.error();
  etx::MemoryAllocator method_arena(sizeof(method_bytes), method_bytes);
  etx::MemoryAllocator temp_arena(sizeof(temp_bytes), temp_bytes);
  etx::Span<uint8_t> buffers[] = {planned_bytes};
  etx::HierarchicalAllocator planned{etx::Span<etx::Span<uint8_t>>(buffers)};
  etx::MemoryManager memory(&method_arena, &planned, &temp_arena);
  auto method = program->load_method("forward", &memory, etx_run::kernels());
  if (!method.ok()) return method.error();
  int32_t sizes[] = {1, 3, 224, 224}, strides[] = {3 * 224 * 224, 224 * 224, 224, 1};
  const uint8_t order[] = {0, 1, 2, 3};
  etx_tensor tensor = {};
  tensor.data = image;
  tensor.sizes = sizes;
  tensor.strides = strides;
  tensor.dim_order = order;
  tensor.numel = tensor.capacity = 3 * 224 * 224;
  tensor.dtype = static_cast<decltype(tensor.dtype)>(etx::ScalarType::Float);
  tensor.rank = 4;
  ETX_TRY(method->set_input(etx::EValue(&tensor), 0));
  ETX_TRY(method->execute());
  const etx::Tensor out = method->get_output(0).to_tensor();
  std::fwrite(out.const_data_ptr<float>(), sizeof(float), static_cast<size_t>(out.numel()), stdout);
  return etx::Error::Ok;
}

}  // namespace

int main(int, char** arguments) {
  const size_t size = read(arguments[1], file, sizeof(file));
  read(arguments[2], image, sizeof(image));
  const etx::Error error = run(size);
  std::fprintf(stderr, "%s\n", etx::to_string(error));
  return error == etx::Error::Ok ? 0 : 1;
}
