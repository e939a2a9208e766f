// SPDX-License-Identifier: BSD-3-Clause
#include <etx/arena.h>
#include <etx/hosted/memory.h>

#include <cstring>

#include "check.h"

namespace {

void static_arena() {
  alignas(64) uint8_t bytes[256];
  etx::MemoryAllocator arena(sizeof(bytes), bytes);
  CHECK(arena.allocate(1) == bytes);
  CHECK(arena.allocate(4) == bytes + 16);
  CHECK(arena.allocate(4, 64) == bytes + 64);
  CHECK(arena.used_size() == 68);
  CHECK(arena.allocate(4, 3) == nullptr);
  CHECK(arena.allocate(SIZE_MAX) == nullptr);
  CHECK(arena.allocate(SIZE_MAX - 8, 1) == nullptr);
  CHECK(arena.allocate(188, 1) == bytes + 68);
  CHECK(arena.allocate(1, 1) == nullptr);
  CHECK(arena.allocate_list<uint64_t>(SIZE_MAX / 4) == nullptr);
  arena.reset();
  CHECK(arena.peak_size() == 256 && arena.used_size() == 0);
  CHECK(arena.allocate_list<uint64_t>(4) != nullptr);
}

void growable_arena() {
  etx::GrowableArena arena(100);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 1; i < 200; ++i) {
      void* piece = arena.allocate(i * 50, 32);
      CHECK(piece != nullptr && reinterpret_cast<uintptr_t>(piece) % 32 == 0);
      std::memset(piece, 1, i * 50);
    }
    CHECK(arena.peak_size() >= 199 * 200 / 2 * 50);
    arena.reset();
  }
  CHECK(arena.allocate(SIZE_MAX / 2) == nullptr);
  CHECK(arena.allocate(16, 0) == nullptr);
}

void planned_arenas() {
  alignas(16) uint8_t bytes[32];
  etx::Span<uint8_t> buffers[] = {{bytes, 32}};
  const etx::HierarchicalAllocator planned{etx::Span<etx::Span<uint8_t>>(buffers)};
  CHECK(*planned.get_offset_address(0, 16, 16) == bytes + 16);
  CHECK(planned.get_offset_address(0, 16, 17).error() == etx::Error::MemoryAllocationFailed);
  CHECK(planned.get_offset_address(0, SIZE_MAX, 1).error() == etx::Error::MemoryAllocationFailed);
  CHECK(planned.get_offset_address(1, 0, 1).error() == etx::Error::InvalidArgument);
}

}  // namespace

int main() {
  static_arena();
  growable_arena();
  planned_arenas();
  return 0;
}
