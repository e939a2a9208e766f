// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CHECKED_H_
#define ETX_PORTABLE_CHECKED_H_

#include <cstdint>

namespace etx::portable {

/// int64 arithmetic on numbers that a program chooses: sizes, strides, offsets, counts. A result
/// that int64 does not hold is lost, and with it what is computed from it, except products with
/// zero. What is lost lies in no range.
///
/// Not needed for one tensor's sizes and strides: the product of its sizes, zeros left out, is less
/// than 2^62, no offset in it is larger, and with elements it lies in memory. Needed once a number
/// is an argument, or sizes of several tensors are multiplied, of which one may have no elements.
class Checked {
 public:
  constexpr Checked(int64_t value = 0) : value_(value) {}

  /// True when the number is known and low <= number <= high.
  constexpr bool is_within(int64_t low, int64_t high) const {
    return !lost_ && value_ >= low && value_ <= high;
  }
  constexpr bool is(int64_t value) const { return is_within(value, value); }
  constexpr int64_t value_or(int64_t otherwise) const { return lost_ ? otherwise : value_; }

  friend constexpr Checked operator+(Checked a, Checked b) {
    Checked sum;
    sum.lost_ = __builtin_add_overflow(a.value_, b.value_, &sum.value_) || a.lost_ || b.lost_;
    return sum;
  }
  friend constexpr Checked operator-(Checked a, Checked b) {
    Checked difference;
    difference.lost_ =
        __builtin_sub_overflow(a.value_, b.value_, &difference.value_) || a.lost_ || b.lost_;
    return difference;
  }
  friend constexpr Checked operator*(Checked a, Checked b) {
    if (a.is(0) || b.is(0)) return Checked(0);
    Checked product;
    product.lost_ =
        __builtin_mul_overflow(a.value_, b.value_, &product.value_) || a.lost_ || b.lost_;
    return product;
  }
  constexpr Checked& operator+=(Checked other) { return *this = *this + other; }
  constexpr Checked& operator-=(Checked other) { return *this = *this - other; }
  constexpr Checked& operator*=(Checked other) { return *this = *this * other; }

 private:
  int64_t value_;
  bool lost_ = false;
};

/// The elements that a loop nest touches, from the lowest to the highest: whether a view stays
/// within a tensor.
class Footprint {
 public:
  explicit Footprint(Checked start) : low_(start), high_(start) {}

  /// Adds a loop of `size` iterations that lie `stride` elements apart.
  void add(Checked size, Checked stride) {
    empty_ |= size.is_within(INT64_MIN, 0);
    (stride.is_within(INT64_MIN, -1) ? low_ : high_) += (size - 1) * stride;
  }
  /// True when all that is touched is among `count` elements. Nothing is touched without
  /// iterations.
  bool stays_within(int64_t count) const {
    return empty_ || (low_.is_within(0, count - 1) && high_.is_within(0, count - 1));
  }

 private:
  Checked low_;
  Checked high_;
  bool empty_ = false;
};

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CHECKED_H_
