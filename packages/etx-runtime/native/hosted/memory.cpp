// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/memory.h>

#include <cstdlib>

namespace etx {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallestBlock = 4096;

uint8_t* align(void* block) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  return static_cast<uint8_t*>(block) + ((kAlignment - address % kAlignment) % kAlignment);
}

}  // namespace

GrowableArena::GrowableArena(size_t initial_size) : MemoryAllocator(0, nullptr) {
  if (initial_size != 0) add_block(initial_size);
}

GrowableArena::~GrowableArena() {
  for (uint8_t* block : blocks_) std::free(block);
}

bool GrowableArena::add_block(size_t size) {
  if (size > SIZE_MAX - kAlignment) return false;
  auto* block = static_cast<uint8_t*>(std::malloc(size + kAlignment));
  if (block == nullptr) return false;
  blocks_.push_back(block);
  full_ += used_;
  base_ = align(block);
  size_ = size;
  used_ = 0;
  return true;
}

void GrowableArena::drop_last_block() {
  if (blocks_.empty()) return;
  std::free(blocks_.back());
  blocks_.pop_back();
  base_ = nullptr;
  size_ = 0;
}

void* GrowableArena::allocate(size_t size, size_t alignment) {
  void* result = MemoryAllocator::allocate(size, alignment);
  if (result == nullptr && alignment != 0 && size < SIZE_MAX / 2 && alignment < SIZE_MAX / 4) {
    size_t room = size + alignment;
    if (room < size_ * 2) room = size_ * 2;
    if (room < kSmallestBlock) room = kSmallestBlock;
    if (used_ == 0) drop_last_block();
    if (!add_block(room) && !add_block(size + alignment)) return nullptr;
    result = MemoryAllocator::allocate(size, alignment);
  }
  if (full_ + used_ > peak_total_) peak_total_ = full_ + used_;
  return result;
}

void GrowableArena::reset() {
  if (blocks_.size() > 1) {
    const size_t total = full_ + used_;
    for (uint8_t* block : blocks_) std::free(block);
    blocks_.clear();
    base_ = nullptr;
    size_ = 0;
    used_ = 0;
    add_block(total + total / 8);
  }
  full_ = 0;
  used_ = 0;
}

std::unique_ptr<PlannedMemory> PlannedMemory::for_method(const MethodMeta& meta,
                                                         const std::vector<Block>& given) {
  std::unique_ptr<PlannedMemory> memory(new PlannedMemory());
  for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    const size_t size = *meta.memory_planned_buffer_size(i);
    Block block = i < given.size() ? given[i] : nullptr;
    if (block == nullptr) {
      const bool fits = size <= SIZE_MAX - kAlignment;
      block = Block(fits ? std::calloc(size + kAlignment, 1) : nullptr, std::free);
    }
    if (block == nullptr) return nullptr;
    memory->buffers_.push_back({align(block.get()), size});
    memory->blocks_.push_back(std::move(block));
    memory->size_ += size;
  }
  const Span<Span<uint8_t>> buffers(memory->buffers_.data(), memory->buffers_.size());
  memory->allocator_ = HierarchicalAllocator(buffers, true);
  return memory;
}

bool PlannedMemory::contains(const void* data, size_t size) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  for (const Span<uint8_t>& buffer : buffers_) {
    const auto begin = reinterpret_cast<uintptr_t>(buffer.data());
    if (address >= begin && address - begin <= buffer.size() &&
        size <= buffer.size() - (address - begin)) {
      return true;
    }
  }
  return false;
}

}  // namespace etx
