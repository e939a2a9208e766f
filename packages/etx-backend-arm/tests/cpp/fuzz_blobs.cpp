// SPDX-License-Identifier: BSD-3-Clause
// fuzz_blobs COUNT SEED FILE...: blobs with some bytes changed are refused, or run.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "files.h"
#include "npu/machine.h"
#include "npu/stream.h"

namespace {

using etx::npu::Blob;
using etx::npu::Bytes;
using etx::npu::Fault;
using etx::npu::Machine;
using etx::npu::Memory;
using etx::npu::Needs;
using etx::npu::Port;
using etx::npu::Region;
using etx::npu::Stream;

constexpr uint64_t kMostWork = 1 << 22;
constexpr size_t kMostMemory = 1 << 24;

enum Outcome { kRefused, kTooLarge, kStopped, kRan };

Outcome try_blob(const Data& data) {
  Blob blob;
  Stream stream;
  if (Blob::read(data.data(), data.size(), &blob) != nullptr) return kRefused;
  if (Stream::read(blob.commands, &stream) != nullptr) return kRefused;
  Needs needs;
  Machine machine(stream.data, stream.words, stream.macs);
  if (machine.measure(&needs) != nullptr) return kRefused;
  if (needs.work > kMostWork || blob.scratch_size > kMostMemory ||
      needs.weights + needs.patch + needs.depth > kMostMemory) {
    return kTooLarge;
  }
  Data scratch(blob.scratch_size), known(blob.scratch_size / 8 + 1);
  std::vector<int16_t> weights(needs.weights);
  std::vector<int32_t> patch(needs.patch), pixel(needs.depth);
  Data constants(blob.weights.data, blob.weights.data + blob.weights.size);
  Memory memory;
  memory.region(0) = {constants.data(), constants.size(), nullptr, true};
  memory.region(1) = {scratch.data(), scratch.size(), known.data(), false};
  Data tables(Memory::kTableBytes), filled(Memory::kTableBytes / 8);
  if (needs.tables) {
    memory.region(Memory::kTables) = {tables.data(), tables.size(), filled.data(), false};
  }
  for (size_t i = 0; i < Blob::count(blob.inputs); ++i) {
    const Port port = Blob::port(blob.inputs, i);
    uint8_t* to = nullptr;
    if (memory.write(port.region, port.offset, static_cast<size_t>(port.bytes), &to) != nullptr) {
      return kRefused;
    }
  }
  const Fault fault = machine.run(&memory, {weights.data(), patch.data(), pixel.data()});
  return fault == nullptr ? kRan : kStopped;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  std::vector<Data> seeds;
  for (int i = 3; i < count; ++i) seeds.push_back(read_file(arguments[i]));
  std::mt19937_64 random(std::strtoull(arguments[2], nullptr, 10));
  size_t outcomes[4] = {};
  for (const Data& seed : seeds) {
    if (try_blob(seed) != kRan) return 3;
  }
  for (unsigned long long i = std::strtoull(arguments[1], nullptr, 10); i > 0; --i) {
    Data data = seeds[random() % seeds.size()];
    for (size_t changes = random() % 3 + 1; changes > 0; --changes) {
      // Half of them in the header and the commands, which are few beside the weights.
      const size_t reach = random() % 2 == 0 ? data.size() : data.size() / 4 + 1;
      data[random() % reach] = static_cast<uint8_t>(random());
    }
    if (random() % 8 == 0) data.resize(random() % data.size());
    ++outcomes[try_blob(data)];
  }
  std::printf("refused %zu, too large %zu, stopped %zu, ran %zu\n", outcomes[kRefused],
              outcomes[kTooLarge], outcomes[kStopped], outcomes[kRan]);
  return 0;
}
