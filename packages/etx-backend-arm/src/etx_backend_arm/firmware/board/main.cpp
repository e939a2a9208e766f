// SPDX-License-Identifier: BSD-3-Clause
/// Loads the linked model, runs it on the linked inputs, and prints what it returns beside what was
/// expected. Yours to change: `etx firmware` writes it where there is none.

#include <etx/program.h>

#include <cstring>

#include "etx_firmware.h"
#include "etx_memory.h"
#include "semihosting.h"

extern "C" {
extern const uint32_t stack_bottom[], stack_top[];
}

namespace {

using etx_board::print;
using etx_board::print_number;

class Failures final : public etx::FailureSink {
 public:
  void report(const etx::Failure& failure) override {
    print("FAILED: ");
    if (failure.name != nullptr) print(failure.name);
    print(failure.reason == nullptr ? " failed" : ": ");
    if (failure.reason != nullptr) print(failure.reason);
    if (failure.instruction >= 0) print(" at instruction ");
    if (failure.instruction >= 0) print_number(static_cast<int32_t>(failure.instruction));
    print("\n");
  }
};

/// Six digits after the point; bits where that does not say the number.
void print_float(float number) {
  uint32_t bits;
  std::memcpy(&bits, &number, sizeof(bits));
  const float size = number < 0 ? -number : number;
  if (!(size < 1e6f)) return etx_board::print_hex(bits);
  if (bits >> 31 != 0) print("-");
  const auto whole = static_cast<uint32_t>(size);
  const auto rest = static_cast<uint32_t>((size - static_cast<float>(whole)) * 1e6f);
  print_number(static_cast<int32_t>(whole));
  char digits[] = ".000000";
  for (uint32_t i = 6, left = rest; i != 0; --i, left /= 10) {
    digits[i] = static_cast<char>('0' + left % 10);
  }
  print(digits);
}

void print_element(etx::ScalarType type, const uint8_t* at, size_t size) {
  if (type == etx::ScalarType::Float) {
    float number;
    std::memcpy(&number, at, sizeof(number));
    return print_float(number);
  }
  uint32_t number = 0;
  std::memcpy(&number, at, size < 4 ? size : 4);
  if (type == etx::ScalarType::Char) number = static_cast<uint32_t>(static_cast<int8_t>(number));
  print_number(static_cast<int32_t>(number));
}

bool is_near(etx::ScalarType type, const uint8_t* a, const uint8_t* b, size_t size) {
  if (std::memcmp(a, b, size) == 0) return true;
  if (type != etx::ScalarType::Float) return false;
  float x, y;
  std::memcpy(&x, a, sizeof(x));
  std::memcpy(&y, b, sizeof(y));
  const float difference = x < y ? y - x : x - y;
  return difference <= ETX_FIRMWARE_TOLERANCE * (1 + (y < 0 ? -y : y));
}

/// Prints an output beside the expected one; returns the number of elements that differ.
int compare(const etx::Tensor& tensor, size_t index, const uint8_t* expected) {
  const auto* actual = static_cast<const uint8_t*>(tensor.const_data_ptr());
  const auto count = static_cast<size_t>(tensor.numel());
  const size_t size = count == 0 ? 0 : tensor.nbytes() / count;
  int differ = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* const a = actual + i * size;
    const uint8_t* const e = expected + i * size;
    const bool is_same = is_near(tensor.scalar_type(), a, e, size);
    differ += is_same ? 0 : 1;
    if (i >= 16 && is_same) continue;
    print("output ");
    print_number(static_cast<int32_t>(index));
    print("[");
    print_number(static_cast<int32_t>(i));
    print("] = ");
    print_element(tensor.scalar_type(), a, size);
    print(is_same ? " as expected: " : " EXPECTED: ");
    print_element(tensor.scalar_type(), e, size);
    print("\n");
  }
  return differ;
}

void print_size(const char* name, size_t size) {
  print(name);
  print_number(static_cast<int32_t>(size));
  print(" bytes\n");
}

bool set_inputs(etx::Method& method) {
  for (const EtxTestTensor& test : etx_test_inputs) {
    const auto info = method.method_meta().input_tensor_meta(test.index);
    if (!info.ok()) return false;
    if (method.resize_input(test.index, info->scalar_type(), info->sizes()) != etx::Error::Ok) {
      return false;
    }
    etx::TensorImpl given = *method.get_input(test.index).to_tensor().impl();
    given.data = const_cast<uint8_t*>(test.begin);
    if (method.set_input(etx::EValue(&given), test.index) != etx::Error::Ok) return false;
  }
  return true;
}

int run(etx::Method& method, etx_firmware::Memory& memory, Failures& failures) {
  for (int i = 0; i < ETX_FIRMWARE_ITERATIONS; ++i) {
    if (!set_inputs(method) || memory.execute(method) != etx::Error::Ok) {
      failures.report(method.last_failure());
      return 1;
    }
  }
  int differ = 0;
  for (const EtxTestTensor& test : etx_test_outputs) {
    differ += compare(method.get_output(test.index).to_tensor(), test.index, test.begin);
  }
  print(differ == 0 ? "PASSED\n" : "DIFFERENT\n");
  return differ == 0 ? 0 : 1;
}

}  // namespace

int main() {
  Failures failures;
  const etx::BufferDataLoader loader(etx_model, static_cast<size_t>(etx_model_end - etx_model));
  const auto program =
      etx::Program::load(&loader, etx::Program::Verification::ETX_FIRMWARE_VERIFY, &failures);
  if (!program.ok()) return 1;
  const etx_plugin* const plugins[] = {ETX_FIRMWARE_PLUGINS(ETX_CALL_PLUGIN)};
  const auto registry = ETX_FIRMWARE_REGISTRY(
      etx::Span<const etx_plugin* const>(plugins, sizeof(plugins) / sizeof(plugins[0])));
  etx_firmware::Memory memory;
  auto method = program->load_method(ETX_FIRMWARE_METHOD_NAME, &memory.manager, registry, nullptr,
                                     nullptr, &failures);
  if (!method.ok()) return 1;
  print_size("method arena: ", memory.own.peak_size());
  const int code = run(*method, memory, failures);
  print_size("temporary memory: ", memory.scratch.peak_size());
  print_size("stack: ", etx_board::used_stack(stack_bottom, stack_top));
  return code;
}
