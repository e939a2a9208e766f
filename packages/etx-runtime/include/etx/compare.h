// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_COMPARE_H_
#define ETX_COMPARE_H_

#include <cstddef>
#include <cstdint>

#include <etx/dtype.h>
#include <etx/span.h>
#include <etx/value.h>

namespace etx {

/// How far a number may be from the expected one: by `absolute + relative * |expected|`, an integer
/// only by `absolute`, so that the default asks for the same one. NaN equals NaN and an infinity
/// itself; bools, and elements without a number such as bits, equal themselves.
struct Tolerance {
  double absolute = 1e-5;
  double relative = 1e-5;
};

/// How far a value is from the expected one.
struct Verdict {
  bool passed;
  /// Why the value could not be compared; null when it was.
  const char* reason;
  /// The elements are numbers, and there is one: what follows is known.
  bool has_numbers;
  /// The largest difference and, of any element, the largest by the expected number's magnitude;
  /// infinite where only one of two is NaN or a number. Those of integers are exact before they
  /// become a double.
  double max_absolute;
  double max_relative;
  /// The first element with the largest difference, or without numbers that differs, by its place
  /// in row-major order whatever the dim orders are; -1 where there is none.
  int64_t worst;
  /// Its real and imaginary parts.
  double got[2];
  double expected[2];
  /// Elements farther off than allowed.
  int64_t different;
};

/// Elements in memory, those of a tensor or of any array.
struct Elements {
  const void* data;
  ScalarType type;
  /// At most kMaxRank, as many as strides.
  Span<const int32_t> sizes;
  /// In elements; of any sign.
  const int64_t* strides;
};

/// Compares element by element, each side in its own dim order, without memory of its own. Another
/// dtype or shape is a reason.
Verdict compare(const Elements& got, const Elements& expected, Tolerance tolerance = {});

/// Compares tensors, ints, floats and bools; another kind of value is a reason.
Verdict compare(const EValue& got, const EValue& expected, Tolerance tolerance = {});

}  // namespace etx

#endif  // ETX_COMPARE_H_
