// SPDX-License-Identifier: BSD-3-Clause
/// Loads the linked models, runs each on its linked inputs, in turn, and prints what it returns
/// beside what was expected. Yours to change: `etx firmware` writes it where there is none.

#include <etx/program.h>

#include <cstring>

#include "etx_firmware.h"
#include "etx_tests.h"
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
  return difference <= etx_firmware::kTolerance * (1 + (y < 0 ? -y : y));
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

/// Reads a model into the RAM that is there for it, where no other code does.
[[maybe_unused]] bool read_model(const char* name, const uint8_t* begin, const uint8_t* end) {
  const bool is_read = etx_board::read_file(name, const_cast<uint8_t*>(begin), end);
  if (!is_read) print("FAILED: the debugger gives no file, or one of another size: ");
  if (!is_read) print(name);
  return is_read;
}

/// A model, loaded, and its test.
struct Loaded {
  Loaded(const etx_firmware::Model& given, const etx_firmware::Test& its_test,
         const etx::Registry& registry, Failures& failures)
      : model(given),
        test(its_test),
        loader(given.loader()),
        memory(given),
        program(etx::Program::load(&loader, etx::Program::Verification::ETX_FIRMWARE_VERIFY,
                                   &failures)),
        method(program.ok() ? program->load_method(given.method, &memory.manager, registry, nullptr,
                                                   nullptr, &failures)
                            : etx::Result<etx::Method>(program.error())) {}

  bool set_inputs() {
    for (const etx_firmware::TestTensor& each : test.inputs) {
      const auto info = method->method_meta().input_tensor_meta(each.index);
      if (!info.ok()) return false;
      if (method->resize_input(each.index, info->scalar_type(), info->sizes()) != etx::Error::Ok) {
        return false;
      }
      etx::TensorImpl input = *method->get_input(each.index).to_tensor().impl();
      input.data = const_cast<uint8_t*>(each.begin);
      if (method->set_input(etx::EValue(&input), each.index) != etx::Error::Ok) return false;
    }
    return true;
  }

  /// Returns whether it ran and, where `is_compared`, returned what was expected.
  bool run(bool is_compared, Failures& failures) {
    if (!set_inputs() || memory.execute(*method) != etx::Error::Ok) {
      failures.report(method->last_failure());
      return false;
    }
    if (!is_compared) return true;
    print(model.name);
    print(": ");
    print(model.method);
    print("\n");
    int differ = 0;
    for (const etx_firmware::TestTensor& each : test.outputs) {
      differ += compare(method->get_output(each.index).to_tensor(), each.index, each.begin);
    }
    print(differ == 0 ? "PASSED\n" : "DIFFERENT\n");
    print_size("method arena: ", memory.own.peak_size());
    print_size("temporary memory: ", memory.scratch.peak_size());
    return differ == 0;
  }

  const etx_firmware::Model& model;
  const etx_firmware::Test& test;
  etx::BufferDataLoader loader;
  etx_firmware::Memory memory;
  etx::Result<etx::Program> program;
  etx::Result<etx::Method> method;
};

}  // namespace

int main() {
  Failures failures;
#define ETX_READ(name) \
  if (!read_model(ETX_FIRMWARE_FOLDER #name ".pte", etx_##name, etx_##name##_end)) return 1;
  ETX_FIRMWARE_READ(ETX_READ)
  const etx_plugin* const plugins[] = {ETX_FIRMWARE_PLUGINS(ETX_CALL_PLUGIN)};
  const auto registry = ETX_FIRMWARE_REGISTRY(
      etx::Span<const etx_plugin* const>(plugins, sizeof(plugins) / sizeof(plugins[0])));
#define ETX_LOAD(name) \
  Loaded(etx_firmware::name::kModel, etx_firmware::name::kTest, registry, failures),
  Loaded models[] = {ETX_FIRMWARE_MODELS(ETX_LOAD)};
  bool is_good = true;
  for (const Loaded& each : models) is_good = is_good && each.method.ok();
  for (int i = 1; is_good && i <= ETX_FIRMWARE_ITERATIONS; ++i) {
    for (Loaded& each : models) {
      is_good = each.run(i == ETX_FIRMWARE_ITERATIONS, failures) && is_good;
    }
  }
  print_size("stack: ", etx_board::used_stack(stack_bottom, stack_top));
  return is_good ? 0 : 1;
}
