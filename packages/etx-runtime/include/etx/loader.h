// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_LOADER_H_
#define ETX_LOADER_H_

#include <cstddef>
#include <cstdint>

#include <etx/result.h>

namespace etx {

/// Bytes with a function that gives them back; move-only.
class FreeableBuffer {
 public:
  using FreeFn = void (*)(void* context, void* data, size_t size);

  FreeableBuffer() = default;
  /// `free_fn` may be null: then nobody is told.
  FreeableBuffer(const void* data, size_t size, FreeFn free_fn, void* context = nullptr)
      : data_(data), size_(size), free_fn_(free_fn), context_(context) {}
  FreeableBuffer(FreeableBuffer&& other) noexcept
      : data_(other.data_), size_(other.size_), free_fn_(other.free_fn_), context_(other.context_) {
    other.forget();
  }
  FreeableBuffer& operator=(FreeableBuffer&& other) noexcept {
    if (this != &other) {
      Free();
      data_ = other.data_;
      size_ = other.size_;
      free_fn_ = other.free_fn_;
      context_ = other.context_;
      other.forget();
    }
    return *this;
  }
  FreeableBuffer(const FreeableBuffer&) = delete;
  FreeableBuffer& operator=(const FreeableBuffer&) = delete;
  ~FreeableBuffer() { Free(); }

  /// Gives the bytes back now.
  void Free() {
    if (data_ != nullptr && free_fn_ != nullptr) {
      free_fn_(context_, const_cast<void*>(data_), size_);
    }
    forget();
  }

  const void* data() const { return data_; }
  const uint8_t* bytes() const { return static_cast<const uint8_t*>(data_); }
  size_t size() const { return size_; }

 private:
  void forget() {
    data_ = nullptr;
    size_ = 0;
    free_fn_ = nullptr;
  }

  const void* data_ = nullptr;
  size_t size_ = 0;
  FreeFn free_fn_ = nullptr;
  void* context_ = nullptr;
};

/// Where the bytes of a program come from: a file, flash, the network.
///
/// Must outlive every Program and Method that was loaded through it. Threads may call it at the
/// same time when they share a Program.
class DataLoader {
 public:
  /// What a piece is for, so that a loader may place it (constants in DRAM, …).
  struct SegmentInfo {
    enum class Type { Program, Constant, Backend, Mutable, External };
    Type segment_type = Type::Program;
    /// Index into the program's segments.
    size_t segment_index = 0;
    /// The backend's id for `Backend`, else null.
    const char* descriptor = nullptr;
  };

  /// `size` bytes from `offset`, at an address aligned to 16, valid until freed.
  /// Errors: InvalidArgument when they lie outside, AccessFailed (fewer bytes count as that),
  /// MemoryAllocationFailed.
  virtual Result<FreeableBuffer> load(size_t offset, size_t size,
                                      const SegmentInfo& segment) const = 0;

  /// Bytes of the whole file.
  virtual Result<size_t> size() const = 0;

 protected:
  ~DataLoader() = default;
};

/// Reads a program from memory that outlives it and is aligned to 16; copies nothing.
class BufferDataLoader final : public DataLoader {
 public:
  BufferDataLoader(const void* data, size_t size)
      : data_(static_cast<const uint8_t*>(data)), size_(size) {}
  ~BufferDataLoader() = default;

  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo&) const override {
    if (offset > size_ || size > size_ - offset) return Error::InvalidArgument;
    return FreeableBuffer(data_ + offset, size, nullptr);
  }
  Result<size_t> size() const override { return size_t{size_}; }

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace etx

#endif  // ETX_LOADER_H_
