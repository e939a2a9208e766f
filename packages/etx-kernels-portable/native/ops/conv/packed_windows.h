// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_PACKED_WINDOWS_H_
#define ETX_PORTABLE_PACKED_WINDOWS_H_

#include "ops/conv/padded_planes.h"
#include "ops/linalg/dotted_columns.h"
#include "ops/linalg/gemm.h"

namespace etx::portable {

/// The outputs of a convolution, not transposed, as columns of a matrix product: what each reads
/// from padded planes is packed into panels, a block of them at a time. A sweep needs no packing,
/// but multiplies the points at the end of each line, too.
class PackedWindows {
 public:
  PackedWindows(const ConvShape& shape, const PaddedPlanes& planes, const Rows& weight,
                int64_t threads);

  /// True where packing costs less than what a sweep multiplies in vain.
  bool pays() const { return pays_; }
  /// Floats of memory for `run`.
  int64_t floats() const { return panel_floats() + dots_.floats(); }
  /// Multiplies the rows of `g`, those of one group, with the windows in `planes`, whose element k
  /// lies at `index[k]` from the window's first point. What `g` says of B is not read; `g.scratch`,
  /// if any, is that of `threads`.
  void run(Context& context, const Gemm& g, const float* planes, const int32_t* index,
           float* memory) const;

 private:
  int64_t panel_floats() const { return (is_shared_ ? 1 : threads_) * block_ * depth_; }
  int64_t point(int64_t output) const;
  void pack_panels(const float* planes, const int32_t* index, int64_t begin, int64_t end,
                   float* panels) const;

  const ConvShape& shape_;
  const PaddedPlanes& planes_;
  int64_t threads_, depth_;
  DottedColumns dots_;
  int64_t columns_;
  int64_t block_;    ///< Columns that are packed before they are multiplied.
  bool by_columns_;  ///< Each thread has some columns; else some rows of all.
  bool is_shared_;   ///< All threads read the same panels; else each packs its own.
  bool pays_;
};

}  // namespace etx::portable

#endif  // ETX_PORTABLE_PACKED_WINDOWS_H_
