// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_HOSTED_MEMORY_H_
#define ETX_HOSTED_MEMORY_H_

#include <memory>
#include <vector>

#include <etx/arena.h>
#include <etx/method_meta.h>

namespace etx {

/// An allocator that takes more blocks from the heap when it needs them. A reset merges them into
/// one, so that the next round takes none.
class GrowableArena final : public MemoryAllocator {
 public:
  explicit GrowableArena(size_t initial_size = 0);
  ~GrowableArena();

  void* allocate(size_t size, size_t alignment = kDefaultAlignment) override;
  void reset() override;
  /// Most bytes that were in use between two resets.
  size_t peak_size() const { return peak_total_; }

 private:
  bool add_block(size_t size);
  void drop_last_block();
  std::vector<uint8_t*> blocks_;
  size_t full_ = 0;
  size_t peak_total_ = 0;
};

/// Zero-filled planned arenas of a method, from the heap.
class PlannedMemory {
 public:
  /// Bytes of an arena; shared by methods that share their state.
  using Block = std::shared_ptr<void>;

  /// Takes arena `i` from `given[i]` where there is one. Null when there is not enough memory.
  static std::unique_ptr<PlannedMemory> for_method(const MethodMeta& meta,
                                                   const std::vector<Block>& given = {});
  const Block& block(size_t index) const { return blocks_[index]; }
  Span<uint8_t> bytes(size_t index) const { return buffers_[index]; }
  HierarchicalAllocator* allocator() { return &allocator_; }
  /// True when the bytes lie in one of the arenas.
  bool contains(const void* data, size_t size) const;
  /// Bytes of all arenas.
  size_t size() const { return size_; }

 private:
  PlannedMemory() : allocator_({}) {}
  std::vector<Block> blocks_;
  std::vector<Span<uint8_t>> buffers_;
  HierarchicalAllocator allocator_;
  size_t size_ = 0;
};

}  // namespace etx

#endif  // ETX_HOSTED_MEMORY_H_
