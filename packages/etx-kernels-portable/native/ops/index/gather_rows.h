// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_GATHER_ROWS_H_
#define ETX_PORTABLE_GATHER_ROWS_H_

#include <cstdint>

#include <etx/kernel.h>

#include "core/shape.h"

namespace etx::portable {

/// Offsets of `count` entries of one side: `table[i]`, or `i * step` without a table.
struct Entries {
  const int64_t* table = nullptr;
  int64_t step = 0;
  int64_t operator[](int64_t i) const { return table != nullptr ? table[i] : i * step; }
};

/// A loop nest one loop of which runs over tables of offsets: what is common to indexing,
/// embedding and their inverse. Offsets and strides are in elements and known to be inside.
class GatherRows {
 public:
  /// Combines `bytes` bytes of `src` into `dst`, in place of copying them.
  using Combine = void (*)(char* dst, const char* src, size_t bytes);

  GatherRows(int64_t count, Entries dst, Entries src) : count_(count), dst_(dst), src_(src) {}

  /// Adds a loop of `size` iterations that is the same for all entries.
  void add(int64_t size, int64_t dst_stride, int64_t src_stride);

  /// Copies. Entries may name the same destination only with `ordered`: then they are taken one
  /// after the other.
  void run(Context& context, void* dst, const void* src, size_t element_size, bool ordered,
           Combine combine = nullptr);

 private:
  struct Dim {
    int64_t size;
    int64_t dst;
    int64_t src;
  };

  int64_t merge(size_t element_size);
  void run_part(char* dst, const char* src, size_t element_size, int64_t begin, int64_t end,
                Combine combine) const;

  int64_t count_;
  Entries dst_;
  Entries src_;
  Dim dims_[kMaxRank];
  int rank_ = 0;
  int64_t run_ = 1;
};

/// The offsets of the elements of a tensor part with these sizes and strides, in row-major order.
/// Errors: MemoryAllocationFailed.
Error make_entries(Context& context, const Shape& sizes, Span<const int64_t> strides,
                   Entries& entries);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_GATHER_ROWS_H_
