// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_FOLD_H_
#define ETX_PORTABLE_FOLD_H_

#include <optional>
#include <type_traits>

#include "core/element.h"
#include "isa/isa.h"
#include "ops/reduce/reduction.h"

namespace etx::portable {

/// What joins two rows of float32: `kRows` of an operation.
using RowLoop = BinaryLoop Isa::*;
/// What joins some of the same lines.
using TapLoop = decltype(Isa::sum_taps) Isa::*;

/// A fold over elements of dtype `as`.
struct Folding {
  ScalarType as;
  /// acc[i] = what nothing folds to.
  void (*start)(void* acc, int64_t n);
  /// acc[i] = pair(acc[i], x[i n], …, x[i n + n - 1]) for i < rows.
  void (*run)(void* acc, const void* x, int64_t n, int64_t rows);
  /// acc[i] = pair(acc[i], x[i]).
  void (*pair)(void* acc, const void* x, int64_t n);
  TapLoop taps;  ///< The same of float32, if there is one.
};

template <typename Op, typename C>
constexpr TapLoop taps_of() {
  if constexpr (std::is_same_v<C, float> && !kIsSmall) {
    if (Op::kRows == RowLoop{&Isa::add}) return &Isa::sum_taps;
    if (Op::kRows == RowLoop{&Isa::maximum}) return &Isa::largest_taps;
  }
  return nullptr;
}

template <typename Op, typename C>
constexpr Folding make_folding(ScalarType as) {
  return {as,
          [](void* acc, int64_t n) {
            for (int64_t i = 0; i < n; ++i) static_cast<C*>(acc)[i] = Op::start();
          },
          [](void* acc, const void* x, int64_t n, int64_t rows) {
            const C* row = static_cast<const C*>(x);
            for (C* total = static_cast<C*>(acc); rows > 0; ++total, row += n, --rows) {
              *total = Op::pair(*total, Op::run(row, n));
            }
          },
          [](void* acc, const void* x, int64_t n) {
            C* total = static_cast<C*>(acc);
            const C* values = static_cast<const C*>(x);
            if constexpr (std::is_same_v<C, float> && !kIsSmall) {
              return (isa().*Op::kRows)(total, values, total, static_cast<size_t>(n));
            }
            for (int64_t i = 0; i < n; ++i) {
              total[i] = Op::pair(total[i], load_element(values + i));
            }
          },
          taps_of<Op, C>()};
}

/// `as` is a type in which the build computes.
template <template <typename> class Op>
const Folding& folding(ScalarType as) {
  static constexpr Folding kLong = make_folding<Op<int64_t>, int64_t>(ScalarType::Long);
  static constexpr Folding kFloat = make_folding<Op<float>, float>(ScalarType::Float);
  static constexpr Folding kDouble = make_folding<Op<double>, double>(ScalarType::Double);
  if constexpr (is_computed(ScalarType::Long)) {
    if (as == ScalarType::Long) return kLong;
  }
  if constexpr (is_computed(ScalarType::Double)) {
    if (as == ScalarType::Double) return kDouble;
  }
  return kFloat;
}

/// The dtype that a caller asked the result to have.
using Asked = std::optional<ScalarType>;

/// out = the elements of `in` along `dims`, folded; `mean`: divided by how many they are.
/// Errors: NotSupported for dtypes, and those of `plan_reduction`.
Error fold(Context& context, const Tensor& in, const Folding& folding, const Fold& dims, bool mean,
           const Tensor& out, const Asked& asked = std::nullopt);

/// Folds with Op in the type `as`.
template <template <typename> class Op>
Error fold(Context& context, const Tensor& in, ScalarType as, const Fold& dims, bool mean,
           const Tensor& out, const Asked& asked = std::nullopt) {
  return fold(context, in, folding<Op>(as), dims, mean, out, asked);
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_FOLD_H_
