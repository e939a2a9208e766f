// SPDX-License-Identifier: BSD-3-Clause
// app <mobilenet_v2.pte> <kernels> < image.bin: prints the scores of the classes.
#include <etx/hosted/module.h>

#include <iostream>

int main(int, char** arguments) {
  const auto fail = [](const std::string& text) { return std::cerr << text << "\n", 1; };
  std::string message;
  if (!etx::Plugins::shared().load(arguments[2], &message)) return fail(message);
  etx::Module model(arguments[1]);
  const auto image = etx::zeros({1, 3, 224, 224});
  std::cin.read(image->mutable_data_ptr<char>(), static_cast<std::streamsize>(image->nbytes()));
  const auto scores = model.get("forward", {image});
  if (!scores.ok()) return fail(model.last_error().message);
  for (int i = 0; i < 1000; ++i) std::cout << scores->toTensor().const_data_ptr<float>()[i] << "\n";
}
