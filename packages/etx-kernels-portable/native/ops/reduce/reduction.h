// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_REDUCTION_H_
#define ETX_PORTABLE_REDUCTION_H_

#include <cstdint>

#include <etx/kernel.h>

#include "core/broadcast.h"
#include "core/callback.h"
#include "core/cast.h"

namespace etx::portable {

/// Which dimensions a reduction folds and where it finds the elements of each result.
struct Reduction {
  Nest<2> kept;       ///< Strides in the input and in the output.
  Nest<1> folded;     ///< Strides in the input.
  int64_t count = 1;  ///< Elements folded into one result.

  int64_t results() const { return kept.inner() * kept.outer(); }
};

/// Which dimensions to fold. Without any: all, or none where `none_if_empty`.
struct Fold {
  IntList dims;
  bool keepdim = false;
  bool none_if_empty = false;
  /// Elements are visited in the order of the indices instead of that of the memory.
  bool in_index_order = false;
};

/// Resizes `outs` (one or two of equal layout) to the shape of the result and lays out the loops.
/// Errors: InvalidArgument for dimensions out of range or given twice, or outs that do not fit.
Error plan_reduction(Context& context, const Tensor& in, const Fold& fold, Span<const Tensor> outs,
                     Reduction& plan);

/// Reads pieces of a tensor as elements of dtype `as`, which has at most 8 bytes.
class Reader {
 public:
#if defined(ETX_ONE_LEVEL)
  static constexpr int64_t kBlock = 256;
#else
  static constexpr int64_t kBlock = 1024;
#endif
  using Piece = Callback<const void*, int64_t>;

  Reader(const Tensor& tensor, ScalarType as) : Reader(tensor, as, as) {}
  /// Elements are converted to dtype `first` before they are seen in `as`.
  Reader(const Tensor& tensor, ScalarType first, ScalarType as)
      : data_(tensor.const_data_ptr<char>()),
        dtype_(tensor.scalar_type()),
        through_(first == tensor.scalar_type() ? as : first),
        as_(as) {}

  /// The elements as they lie; null where they are converted.
  const char* in_place() const { return dtype_ == as_ && through_ == as_ ? data_ : nullptr; }

  /// Calls `f(x, n)` for consecutive pieces of the `count` elements from `offset`, which lie
  /// `stride` apart.
  void for_each_piece(int64_t offset, int64_t stride, int64_t count, const Piece& f) const;

  /// The same for all elements that are folded into the result at `offset`.
  void for_each_folded(const Reduction& plan, int64_t offset, const Piece& f) const;

 private:
  const char* data_;
  ScalarType dtype_;
  ScalarType through_;
  ScalarType as_;
};

/// Writes elements of dtype `as` to a tensor.
class Writer {
 public:
  Writer(const Tensor& tensor, ScalarType as)
      : data_(tensor.mutable_data_ptr<char>()), dtype_(tensor.scalar_type()), as_(as) {}

  void write(int64_t offset, int64_t stride, const void* values, int64_t n) const;
  void write(int64_t offset, const void* value) const { write(offset, 1, value, 1); }

 private:
  char* data_;
  ScalarType dtype_;
  ScalarType as_;
};

}  // namespace etx::portable

#endif  // ETX_PORTABLE_REDUCTION_H_
