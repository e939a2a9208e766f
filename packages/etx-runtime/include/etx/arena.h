// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_ARENA_H_
#define ETX_ARENA_H_

#include <cstddef>
#include <cstdint>

#include <etx/result.h>
#include <etx/span.h>

namespace etx {

/// Hands out consecutive pieces of one block of the caller's bytes, which must outlive it.
///
/// Subclass it to allocate in another way; the runtime calls only `allocate` and `reset`, and
/// never deletes it.
class MemoryAllocator {
 public:
  static constexpr size_t kDefaultAlignment = 16;

  MemoryAllocator(size_t size, uint8_t* base) : base_(base), size_(size) {}
  MemoryAllocator(const MemoryAllocator&) = delete;
  MemoryAllocator& operator=(const MemoryAllocator&) = delete;

  /// `size` bytes at a multiple of `alignment`, a power of two; null when there is not enough.
  virtual void* allocate(size_t size, size_t alignment = kDefaultAlignment) {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) return nullptr;
    const uintptr_t address = reinterpret_cast<uintptr_t>(base_) + used_;
    const size_t padding =
        static_cast<size_t>((alignment - (address & (alignment - 1))) & (alignment - 1));
    const size_t left = size_ - used_;
    if (padding > left || size > left - padding) return nullptr;
    void* result = base_ + used_ + padding;
    used_ += padding + size;
    if (used_ > peak_) peak_ = used_;
    return result;
  }

  /// Takes back all pieces at once.
  virtual void reset() { used_ = 0; }

  /// Uninitialised room for `count` objects; null when there is not enough.
  template <typename T>
  T* allocate_list(size_t count, size_t alignment = alignof(T)) {
    if (count > SIZE_MAX / sizeof(T)) return nullptr;
    return static_cast<T*>(allocate(count * sizeof(T), alignment));
  }

  uint8_t* base_address() const { return base_; }
  size_t size() const { return size_; }
  size_t used_size() const { return used_; }
  /// Most bytes that were in use at any time.
  size_t peak_size() const { return peak_; }

 protected:
  uint8_t* base_;
  size_t size_;
  size_t used_ = 0;
  size_t peak_ = 0;
};

/// The planned arenas of a method, one a memory id (SRAM, DRAM…), in the order of
/// `MethodMeta::memory_planned_buffer_size`. The bytes must outlive the methods loaded into them
/// and be aligned to 16.
class HierarchicalAllocator {
 public:
  /// `zero_filled`: all bytes are 0 already, or hold state that a load must keep.
  explicit HierarchicalAllocator(Span<Span<uint8_t>> buffers, bool zero_filled = false)
      : buffers_(buffers), zero_filled_(zero_filled) {}

  /// Arena `index` (the file's memory id less one), from `offset`, at least `size` bytes.
  /// Errors: InvalidArgument, MemoryAllocationFailed when it is smaller than that.
  Result<void*> get_offset_address(size_t index, size_t offset, size_t size) const {
    if (index >= buffers_.size()) return Error::InvalidArgument;
    const Span<uint8_t> buffer = buffers_[index];
    if (offset > buffer.size() || size > buffer.size() - offset) {
      return Error::MemoryAllocationFailed;
    }
    return static_cast<void*>(buffer.data() + offset);
  }

  Span<Span<uint8_t>> buffers() const { return buffers_; }
  bool zero_filled() const { return zero_filled_; }

 private:
  Span<Span<uint8_t>> buffers_;
  bool zero_filled_;
};

/// The memory of one method: `method` for what lives as long as it, `planned` for its tensors,
/// `temp` for kernels' scratch, reset after each kernel. All must outlive the method; none may be
/// shared by methods that run at the same time.
class MemoryManager {
 public:
  explicit MemoryManager(MemoryAllocator* method, HierarchicalAllocator* planned = nullptr,
                         MemoryAllocator* temp = nullptr)
      : method_(method), planned_(planned), temp_(temp) {}

  MemoryAllocator* method_allocator() const { return method_; }
  /// May be null, for programs without planned tensors.
  HierarchicalAllocator* planned_memory() const { return planned_; }
  /// May be null, then kernels that ask for scratch memory fail.
  MemoryAllocator* temp_allocator() const { return temp_; }

 private:
  MemoryAllocator* method_;
  HierarchicalAllocator* planned_;
  MemoryAllocator* temp_;
};

}  // namespace etx

#endif  // ETX_ARENA_H_
