// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_STRIDED_COPY_H_
#define ETX_PORTABLE_STRIDED_COPY_H_

#include <cstddef>
#include <cstdint>

#include <etx/kernel.h>

#include "core/checked.h"

namespace etx::portable {

/// Where the loops of a copy begin: at element `first` of a tensor, or of `count` elements.
struct Place {
  Place(const Tensor& tensor, Checked first_element = 0)
      : data(static_cast<char*>(tensor.mutable_data_ptr())),
        count(tensor.numel()),
        first(first_element) {}
  Place(const void* memory, int64_t count_, Checked first_element = 0)
      : data(static_cast<char*>(const_cast<void*>(memory))), count(count_), first(first_element) {}

  char* data;
  int64_t count;
  Checked first;
};

/// A loop nest that copies elements, whatever they mean: each kernel that only moves data
/// describes its movement with this and leaves the order of the loops to `run`.
///
/// Dimensions may be added in any order. A source stride may be 0 (repetition) or negative
/// (flipping); destination strides must not make two iterations write the same element.
class StridedCopy {
 public:
  /// Two loops for each of the 16 dimensions a tensor may have.
  static constexpr int kMaxDims = 2 * ETX_MAX_RANK;

  /// Adds a loop of `size` iterations; strides are in elements.
  void add(Checked size, Checked dst_stride, Checked src_stride);
  /// Adds a loop for each dimension of `sizes`, with the strides of `dst` and `src`, which have
  /// at least that rank. Dimension `skip` is left out.
  void add_dims(const Tensor& sizes, const Tensor& dst, const Tensor& src, ssize_t skip = -1);

  /// Copies elements of `element_size` (1, 2, 4, 8 or 16) bytes.
  /// Errors: InvalidArgument when a loop would leave the elements of `dst` or `src`.
  Error run(Context& context, const Place& dst, const Place& src, size_t element_size);

  /// The two innermost loops; strides in bytes, `unit` bytes are consecutive on both sides.
  struct Plane {
    int64_t rows, row_dst, row_src;
    int64_t cols, col_dst, col_src;
    size_t unit;
  };

 private:
  struct Dim {
    int64_t size;
    int64_t dst;
    int64_t src;
  };

  bool stays_within(const Place& dst, const Place& src) const;
  void normalize(size_t element_size);
  Plane take_plane(size_t element_size);
  void copy_planes(const Plane& plane, char* dst, const char* src, int64_t begin,
                   int64_t end) const;

  Dim dims_[kMaxDims];
  int rank_ = 0;
  bool empty_ = false;
  bool lost_ = false;
};

/// Copies `src` to `dst`, which have the same sizes and element size, each with its dim order.
Error copy_elements(Context& context, const Tensor& dst, const Tensor& src);

/// Copies the elements of `tensor`, here `size` bytes each and at `from`, to where they lie one
/// after the other in a dim order; null: row-major.
Error pack_elements(Context& context, const Tensor& tensor, size_t size, const void* from, void* to,
                    const uint8_t* dim_order = nullptr);

/// The way back: to `tensor`, from where its elements lie in a dim order.
Error unpack_elements(Context& context, const Tensor& tensor, const void* from,
                      const uint8_t* dim_order = nullptr);

/// Copies `src` to `dst`, which have the same number of elements and the same element size: the
/// k-th in the order of the indices goes to the k-th.
Error copy_reshaped(Context& context, const Tensor& dst, const Tensor& src);

/// Sets `data` to the elements of `tensor` in the order of the indices: its own memory, or
/// temporary memory. Errors: MemoryAllocationFailed.
Error row_major(Context& context, const Tensor& tensor, const void*& data);

/// Writes `value`, one element of out's dtype, to all of `out`.
Error fill_elements(Context& context, const Tensor& out, const void* value);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_STRIDED_COPY_H_
