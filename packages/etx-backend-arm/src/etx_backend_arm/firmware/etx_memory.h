// SPDX-License-Identifier: BSD-3-Clause
/// The memory of a method, in the sizes that etx_firmware.h states. Include it in one source file.
#ifndef ETX_FIRMWARE_MEMORY_H_
#define ETX_FIRMWARE_MEMORY_H_

#include <etx/program.h>

#include "etx_firmware.h"

namespace etx_firmware {

#define ETX_ARENA(id, size) \
  alignas(64) __attribute__((section(".arenas." #id))) inline uint8_t arena_##id[size];
#define ETX_ARENA_SPAN(id, size) etx::Span<uint8_t>(arena_##id, size),
ETX_FIRMWARE_ARENAS(ETX_ARENA)
alignas(16) __attribute__((section(".arenas"))) inline uint8_t method_bytes[ETX_FIRMWARE_METHOD];

#ifdef ETX_FIRMWARE_PLACES
struct Place {
  uint32_t at, size;
};
#define ETX_PLACE(at, size) {at, size},
constexpr Place kPlaces[] = {ETX_FIRMWARE_PLACES(ETX_PLACE)};

/// Lends each instruction the bytes of the first arena that no live tensor has.
class Scratch final : public etx::MemoryAllocator {
 public:
  Scratch() : etx::MemoryAllocator(0, nullptr) {}

  etx::Error execute(etx::Method& method) {
    for (const Place& place : kPlaces) {
      base_ = arena_1 + place.at;
      size_ = place.size;
      if (const etx::Error error = method.step(); error != etx::Error::Ok) return error;
    }
    return method.reset_execution();
  }
};
#else
alignas(64) __attribute__((section(".arenas"))) inline uint8_t temp_bytes[ETX_FIRMWARE_TEMP + 1];

class Scratch final : public etx::MemoryAllocator {
 public:
  Scratch() : etx::MemoryAllocator(ETX_FIRMWARE_TEMP, temp_bytes) {}

  etx::Error execute(etx::Method& method) { return method.execute(); }
};
#endif

/// All that a method is loaded into. There is one: load one method into it.
struct Memory {
  Memory() : own(sizeof(method_bytes), method_bytes), manager(&own, &planned, &scratch) {}
  Memory(const Memory&) = delete;

  /// Runs the method that was loaded into this memory; its kernels' scratch is there only now.
  etx::Error execute(etx::Method& method) { return scratch.execute(method); }

  etx::Span<uint8_t> arenas[ETX_FIRMWARE_ARENA_COUNT + 1] = {
      ETX_FIRMWARE_ARENAS(ETX_ARENA_SPAN){nullptr, 0}};
  etx::HierarchicalAllocator planned{
      etx::Span<etx::Span<uint8_t>>(arenas, ETX_FIRMWARE_ARENA_COUNT)};
  etx::MemoryAllocator own;
  Scratch scratch;
  etx::MemoryManager manager;
};

}  // namespace etx_firmware

#endif  // ETX_FIRMWARE_MEMORY_H_
