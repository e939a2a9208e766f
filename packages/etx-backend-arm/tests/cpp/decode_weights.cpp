// SPDX-License-Identifier: BSD-3-Clause
// Reads streams (uint32 length, uint32 count, bytes) and writes the weights of each as int16.
#include <cstdio>
#include <vector>

#include "npu/weights.h"

int main() {
  uint32_t sizes[2];
  while (std::fread(sizes, sizeof(sizes), 1, stdin) == 1) {
    std::vector<uint8_t> data(sizes[0]);
    std::vector<int16_t> weights(sizes[1]);
    if (std::fread(data.data(), 1, data.size(), stdin) != data.size()) return 2;
    etx::npu::WeightStream stream(data.data(), data.size());
    for (int16_t& weight : weights) {
      if (const etx::npu::Fault fault = stream.next(&weight)) {
        std::fprintf(stderr, "%s\n", fault);
        return 1;
      }
    }
    std::fwrite(weights.data(), sizeof(int16_t), weights.size(), stdout);
  }
  return 0;
}
