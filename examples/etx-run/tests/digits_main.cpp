// SPDX-License-Identifier: BSD-3-Clause
/// An application of its own: names the digit of each linked image.

#include <cstring>

#include "etx_firmware.h"
#include "semihosting.h"

asm(".section .test, \"a\"\n"
    ".global images, images_end\n"
    "images: .incbin \"@IMAGES@\"\n"
    "images_end: .text\n");
extern "C" const int8_t images[], images_end[];

class Failures final : public etx::FailureSink {
 public:
  void report(const etx::Failure& failure) override {
    etx_board::print(failure.reason == nullptr ? "failed" : failure.reason);
  }
};

int main() {
  constexpr size_t kImage = 64, kDigits = 10;
  Failures failures;
  const etx_firmware::Model& model = etx_firmware::model::kModel;
  const etx::BufferDataLoader loader = model.loader();
  const auto program = etx::Program::load(&loader, etx::Program::Verification::Full, &failures);
  if (!program.ok()) return 1;
  const etx_plugin* const plugins[] = {ETX_FIRMWARE_PLUGINS(ETX_CALL_PLUGIN)};
  const auto registry = ETX_FIRMWARE_REGISTRY(
      etx::Span<const etx_plugin* const>(plugins, sizeof(plugins) / sizeof(plugins[0])));
  etx_firmware::Memory memory(model);
  auto method =
      program->load_method(model.method, &memory.manager, registry, nullptr, nullptr, &failures);
  if (!method.ok()) return 1;
  etx_board::print("digits: ");
  for (const int8_t* image = images; image != images_end; image += kImage) {
    etx::TensorImpl given = *method->get_input(0).to_tensor().impl();
    given.data = const_cast<int8_t*>(image);
    if (method->set_input(etx::EValue(&given), 0) != etx::Error::Ok) return 1;
    if (memory.execute(*method) != etx::Error::Ok) return 1;
    const auto* const scores = method->get_output(0).to_tensor().const_data_ptr<int8_t>();
    size_t best = 0;
    for (size_t i = 1; i < kDigits; ++i) best = scores[i] > scores[best] ? i : best;
    const char text[] = {static_cast<char>('0' + best), 0};
    etx_board::print(text);
  }
  etx_board::print("\n");
  return 0;
}
