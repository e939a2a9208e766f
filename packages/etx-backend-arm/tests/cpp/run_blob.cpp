// SPDX-License-Identifier: BSD-3-Clause
// run_blob BLOB IN OUT: runs a blob on the bytes of all its inputs, and writes those of its
// outputs.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "files.h"
#include "npu/machine.h"
#include "npu/stream.h"

namespace {

using etx::npu::Blob;
using etx::npu::Fault;
using etx::npu::Machine;
using etx::npu::Memory;
using etx::npu::Needs;
using etx::npu::Port;
using etx::npu::Stream;

Fault run(const Data& data, const Data& inputs, Data* outputs, size_t* offset) {
  Blob blob;
  Stream stream;
  NPU_TRY(Blob::read(data.data(), data.size(), &blob));
  NPU_TRY(Stream::read(blob.commands, &stream));
  Needs needs;
  Machine machine(stream.data, stream.words, stream.macs);
  const Fault measured = machine.measure(&needs);
  *offset = machine.offset();
  NPU_TRY(measured);
  Data scratch(blob.scratch_size), known(blob.scratch_size / 8 + 1);
  std::vector<int16_t> weights(needs.weights);
  std::vector<int32_t> patch(needs.patch), pixel(needs.depth);
  Data constants(blob.weights.data, blob.weights.data + blob.weights.size);
  Data tables(Memory::kTableBytes), filled(Memory::kTableBytes / 8);
  Memory memory;
  memory.region(0) = {constants.data(), constants.size(), nullptr, true};
  memory.region(1) = {scratch.data(), scratch.size(), known.data(), false};
  memory.region(2) = memory.region(1);
  memory.region(Memory::kTables) = {tables.data(), tables.size(), filled.data(), false};
  size_t at = 0;
  for (size_t i = 0; i < Blob::count(blob.inputs); ++i) {
    const Port port = Blob::port(blob.inputs, i);
    const auto count = static_cast<size_t>(port.bytes);
    uint8_t* to = nullptr;
    NPU_TRY(memory.write(port.region, port.offset, count, &to));
    if (count > inputs.size() - at) return "fewer input bytes than the blob has";
    std::memcpy(to, inputs.data() + at, count);
    at += count;
  }
  const Fault fault = machine.run(&memory, {weights.data(), patch.data(), pixel.data()});
  *offset = machine.offset();
  NPU_TRY(fault);
  for (size_t i = 0; i < Blob::count(blob.outputs); ++i) {
    const Port port = Blob::port(blob.outputs, i);
    const uint8_t* from = nullptr;
    NPU_TRY(memory.read(port.region, port.offset, static_cast<size_t>(port.bytes), &from));
    outputs->insert(outputs->end(), from, from + port.bytes);
  }
  return nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  Data outputs;
  size_t offset = 0;
  const Fault fault = run(read_file(arguments[1]), read_file(arguments[2]), &outputs, &offset);
  if (fault != nullptr) {
    std::fprintf(stderr, "command at offset 0x%zx: %s\n", offset, fault);
    return 1;
  }
  std::ofstream file(arguments[3], std::ios::binary);
  file.write(reinterpret_cast<const char*>(outputs.data()),
             static_cast<std::streamsize>(outputs.size()));
  return 0;
}
