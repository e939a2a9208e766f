// SPDX-License-Identifier: BSD-3-Clause
/// What a linked model is, and the memory that it is loaded into.
#ifndef ETX_FIRMWARE_MEMORY_H_
#define ETX_FIRMWARE_MEMORY_H_

#include <etx/program.h>

namespace etx_firmware {

/// Bytes of a model's first arena, lent to one instruction.
struct Place {
  uint32_t at, size;
};

/// A method of a linked file and the bytes that are its own, or shared with others: then its
/// outputs are valid until another one is executed.
struct Model {
  const char* name;
  const char* method;
  const uint8_t *file, *file_end;
  etx::Span<uint8_t> own, temporary;
  etx::Span<etx::Span<uint8_t>> arenas;
  /// Of each instruction's scratch; empty where it lies in `temporary`.
  etx::Span<const Place> places;

  /// Reads the file; must outlive what is loaded by it.
  etx::BufferDataLoader loader() const { return {file, static_cast<size_t>(file_end - file)}; }
};

/// Kernels' scratch: bytes of its own, or those of the first arena that no live tensor has.
class Scratch final : public etx::MemoryAllocator {
 public:
  explicit Scratch(const Model& model)
      : etx::MemoryAllocator(model.temporary.size(), model.temporary.data()), model_(model) {}

  etx::Error execute(etx::Method& method) {
    const etx::Span<const Place> places = model_.places;
    if (places.empty()) return method.execute();
    uint8_t* const arena = model_.arenas[0].data();
    for (const Place& place : places) {
      base_ = arena + place.at;
      size_ = place.size;
      if (const etx::Error error = method.step(); error != etx::Error::Ok) return error;
    }
    return method.reset_execution();
  }

 private:
  const Model& model_;
};

/// All that a model is loaded into. There is one of each: load its method into it once.
struct Memory {
  explicit Memory(const Model& model)
      : planned(model.arenas),
        own(model.own.size(), model.own.data()),
        scratch(model),
        manager(&own, &planned, &scratch) {}
  Memory(const Memory&) = delete;

  /// Runs the method that was loaded into this memory; its kernels' scratch is there only now.
  etx::Error execute(etx::Method& method) { return scratch.execute(method); }

  etx::HierarchicalAllocator planned;
  etx::MemoryAllocator own;
  Scratch scratch;
  etx::MemoryManager manager;
};

}  // namespace etx_firmware

#endif  // ETX_FIRMWARE_MEMORY_H_
