// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <optional>

#include "core/dispatch.h"
#include "core/loops.h"
#include "core/shape.h"

namespace etx::portable {
namespace {

template <typename T, typename N>
void arange_loop(N start, N step, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const N value = wrap_add(start, wrap_mul(static_cast<N>(i), step));
    y[i] = static_cast<T>(static_cast<Compute<T>>(value));
  }
}

/// Steps from `start` until `end` is reached or passed, where `step` leads towards it.
uint64_t steps(int64_t start, int64_t end, int64_t step) {
  const uint64_t a = static_cast<uint64_t>(start);
  const uint64_t b = static_cast<uint64_t>(end);
  const uint64_t distance = step > 0 ? b - a : a - b;
  const uint64_t by = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  return distance / by + (distance % by != 0 ? 1 : 0);
}

bool fits_int64(const Scalar& v) {
  return !v.is_floating() || std::fabs(v.to<double>()) < 9223372036854775808.0;
}

Error arange(Context& context, const Scalar& start, const Scalar& end, const Scalar& step,
             const Tensor& out) {
  const ScalarType dtype = out.scalar_type();
  const bool given_integers = !start.is_floating() && !end.is_floating() && !step.is_floating();
  const bool integral = given_integers || !is_floating(dtype);
  const bool counts_integers = given_integers || dtype == ScalarType::Long;
  ETX_CHECK(context, !integral || (fits_int64(start) && fits_int64(end) && fits_int64(step)),
            InvalidArgument, "start, end and step must fit into an int64");
  const double from =
      counts_integers ? static_cast<double>(start.to<int64_t>()) : start.to<double>();
  const double to = counts_integers ? static_cast<double>(end.to<int64_t>()) : end.to<double>();
  const double by = counts_integers ? static_cast<double>(step.to<int64_t>()) : step.to<double>();
  ETX_CHECK(context, by != 0 && std::isfinite(from) && std::isfinite(to), InvalidArgument,
            "step must not be zero; start and end must be finite");
  const double span = (to - from) / by;
  ETX_CHECK(context, span >= 0, InvalidArgument, "step must lead from start to end");
  const double count =
      counts_integers
          ? static_cast<double>(steps(start.to<int64_t>(), end.to<int64_t>(), step.to<int64_t>()))
          : std::ceil(span);
  ETX_CHECK(context, count <= INT32_MAX, InvalidArgument, "the result has too many elements");
  Shape shape;
  shape.push(static_cast<int64_t>(count));
  ETX_TRY(resize_out(context, out, shape));
  return dispatch(context, Real{}, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = out.mutable_data_ptr<T>();
    if (integral) {
      arange_loop(start.to<int64_t>(), step.to<int64_t>(), y, out.numel());
    } else {
      arange_loop(from, by, y, out.numel());
    }
    return Error::Ok;
  });
}

Error arange_out(Context& context, Scalar end, Tensor& out) {
  return arange(context, Scalar(int64_t{0}), end, Scalar(int64_t{1}), out);
}
Error arange_start_out(Context& context, Scalar start, Scalar end, Scalar step, Tensor& out) {
  return arange(context, start, end, step, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::arange.out", arange_out, Real::bits),
    ETX_KERNEL("aten::arange.start_out", arange_start_out, Real::bits),
};

}  // namespace

ETX_KERNEL_TABLE(arange_kernels, kRows);

}  // namespace etx::portable
