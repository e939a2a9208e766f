// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_CORTEX_M_OPERANDS_H_
#define ETX_CORTEX_M_OPERANDS_H_

#include <etx/kernel.h>

#include "cortex_m/fixed_point.h"

namespace etx::cortex_m {

/// Whether both have the same sizes in the same order of memory.
inline bool is_like(const Tensor& a, const Tensor& b) {
  if (a.dim() != b.dim()) return false;
  for (ssize_t i = 0; i < a.dim(); ++i) {
    if (a.size(i) != b.size(i) || (a.size(i) != 1 && a.stride(i) != b.stride(i))) return false;
  }
  return true;
}

constexpr ssize_t kMostRank = 8;

/// How far the elements of an operand that is repeated to the sizes of `out` are from each other in
/// dimension `d` of it; -1 where the sizes do not allow that.
inline ssize_t repeated_stride(const Tensor& operand, const Tensor& out, ssize_t d) {
  const ssize_t at = d - (out.dim() - operand.dim());
  if (at < 0 || (operand.size(at) == 1 && out.size(d) != 1)) return 0;
  return operand.size(at) == out.size(d) ? operand.stride(at) : -1;
}

/// Two operands that are repeated to the sizes of a third: `run` elements lie side by side in each.
class Repeated {
 public:
  /// False where the sizes do not allow it, or out has more than kMostRank dimensions.
  bool read(const Tensor& a, const Tensor& b, const Tensor& out) {
    rank_ = out.dim();
    if (rank_ > kMostRank || a.dim() > rank_ || b.dim() > rank_) return false;
    bool is_run = true;
    for (ssize_t i = rank_; i-- > 0;) {
      const ssize_t d = out.impl()->dim_order[i];
      const Side side = {out.size(d), repeated_stride(a, out, d), repeated_stride(b, out, d)};
      if (side.x < 0 || side.y < 0) return false;
      is_run = is_run && (side.size == 1 || (side.x == run_ && side.y == run_));
      if (is_run) {
        run_ *= side.size;
        rank_ = i;
      }
      sides_[i] = side;
    }
    return true;
  }

  /// Calls f(x, y, to, count) for each run; `numel` is that of out.
  template <typename F>
  void each(const int8_t* x, const int8_t* y, int8_t* to, ssize_t numel, const F& f) const {
    ssize_t index[kMostRank] = {};
    for (const int8_t* const end = to + numel; to != end;) {
      f(x, y, to, run_);
      to += run_;
      for (ssize_t i = rank_; i-- > 0;) {
        const Side& side = sides_[i];
        x += side.x;
        y += side.y;
        if (++index[i] < side.size) break;
        x -= side.size * side.x;
        y -= side.size * side.y;
        index[i] = 0;
      }
    }
  }

 private:
  struct Side {
    ssize_t size, x, y;
  };
  Side sides_[kMostRank];
  ssize_t rank_ = 0;
  ssize_t run_ = 1;
};

inline bool is_int8(const Tensor& tensor) { return tensor.scalar_type() == ScalarType::Char; }

inline bool is_offset(int64_t number) { return number >= -255 && number <= 255; }

inline bool is_factor(int64_t multiplier, int64_t shift) {
  return multiplier >= INT32_MIN && multiplier <= INT32_MAX && shift >= -31 && shift <= 31;
}

inline Factor factor(int64_t multiplier, int64_t shift) {
  return {static_cast<int32_t>(multiplier), static_cast<int32_t>(shift)};
}

}  // namespace etx::cortex_m

#endif  // ETX_CORTEX_M_OPERANDS_H_
