// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_ARRAY_H_
#define ETX_XNNPACK_ARRAY_H_

#include <cstddef>
#include <cstdlib>
#include <type_traits>

#include "failure.h"

namespace etx::xnnpack {

/// Owned elements, all zero at first. Without exceptions, and so without std::vector.
template <typename T>
class Array {
  static_assert(std::is_trivially_destructible_v<T>, "elements are only freed");

 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { std::free(data_); }

  /// Once. Errors: MemoryAllocationFailed.
  Error allocate(size_t size) {
    if (size == 0) return Error::Ok;
    data_ = static_cast<T*>(std::calloc(size, sizeof(T)));
    if (data_ == nullptr) {
      return fail(Error::MemoryAllocationFailed, "no memory for %zu bytes", size * sizeof(T));
    }
    size_ = size;
    return Error::Ok;
  }

  /// Frees the elements, so that others may be allocated.
  void release() {
    std::free(data_);
    data_ = nullptr;
    size_ = 0;
  }

  size_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_ARRAY_H_
