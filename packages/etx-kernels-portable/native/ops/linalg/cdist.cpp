// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/shape.h"
#include "core/work.h"

namespace etx::portable {
namespace {

template <typename T>
T distance(const T* a, const T* b, int64_t n, double p) {
  T sum = 0;
  if (p == 2) {
    for (int64_t i = 0; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return std::sqrt(sum);
  }
  for (int64_t i = 0; i < n; ++i) {
    const T d = std::fabs(a[i] - b[i]);
    if (p == 0) {
      sum += d != d ? d : d != T{0} ? T{1} : T{0};
    } else if (p == 1) {
      sum += d;
    } else if (std::isinf(p)) {
      sum = d > sum || d != d ? d : sum;
    } else {
      sum += std::pow(d, static_cast<T>(p));
    }
  }
  return p == 0 || p == 1 || std::isinf(p) ? sum : std::pow(sum, static_cast<T>(1 / p));
}

/// The leading dimensions of two tensors, broadcast against each other.
struct Batches {
  ssize_t rank = 0;
  int64_t sizes[kMaxRank], a[kMaxRank], b[kMaxRank], count = 1;

  Error broadcast(Context& context, const Tensor& x1, const Tensor& x2) {
    rank = max(x1.dim(), x2.dim()) - 2;
    Checked a_stride = 1, b_stride = 1, product = 1;
    for (ssize_t d = 0; d < rank; ++d) {
      const int64_t m = d < x1.dim() - 2 ? x1.size(x1.dim() - 3 - d) : 1;
      const int64_t n = d < x2.dim() - 2 ? x2.size(x2.dim() - 3 - d) : 1;
      ETX_CHECK(context, m == n || m == 1 || n == 1, InvalidArgument,
                "the batch dimensions of x1 and x2 must be broadcastable");
      sizes[d] = m == 1 ? n : m;
      a[d] = m == 1 ? 0 : a_stride.value_or(0);
      b[d] = n == 1 ? 0 : b_stride.value_or(0);
      a_stride *= m;
      b_stride *= n;
      product *= sizes[d];
    }
    count = product.value_or(INT64_MAX);
    return Error::Ok;
  }

  /// Which matrix of x1 and of x2 belongs to batch `i`.
  void find(int64_t i, int64_t& in_a, int64_t& in_b) const {
    in_a = in_b = 0;
    for (ssize_t d = 0; d < rank; ++d) {
      in_a += i % sizes[d] * a[d];
      in_b += i % sizes[d] * b[d];
      i /= sizes[d];
    }
  }
};

Error _cdist_forward_out(Context& context, const Tensor& x1, const Tensor& x2, double p,
                         std::optional<int64_t> /*compute_mode*/, Tensor& out) {
  ETX_CHECK(context, x1.dim() >= 2 && x2.dim() >= 2 && x1.size(-1) == x2.size(-1), InvalidArgument,
            "x1 and x2 must be matrices with as many columns");
  ETX_CHECK(context, p >= 0, InvalidArgument, "p must not be negative");
  ETX_CHECK(context, x1.scalar_type() == x2.scalar_type() && x1.scalar_type() == out.scalar_type(),
            InvalidArgument, "x1, x2 and out must have the same dtype");
  ETX_CHECK(context, Floating::contains(out.scalar_type()), NotSupported,
            "cdist takes floating dtypes");
  Batches batches;
  ETX_TRY(batches.broadcast(context, x1, x2));
  const int64_t rows = x1.size(-2), columns = x2.size(-2), width = x1.size(-1);
  Shape shape;
  for (ssize_t d = batches.rank; d-- > 0;) shape.push(batches.sizes[d]);
  shape.push(rows);
  shape.push(columns);
  ETX_TRY(resize_out(context, out, shape));
  if (out.numel() == 0) return Error::Ok;
  const ScalarType type = wide(out.scalar_type());
  return dispatch<is_computed>(ComputedFloating{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *a, *b;
    ResultOperand result;
    ETX_TRY(read_operand(context, x1, type, a));
    ETX_TRY(read_operand(context, x2, type, b));
    ETX_TRY(result.prepare(context, out, type));
    T* const y = result.data<T>();
    const int64_t grain = divide_up(kThreadWork, columns * width + 1);
    context.parallel_for(0, batches.count * rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t in_a, in_b;
        batches.find(i / rows, in_a, in_b);
        const T* const from = a + (in_a * rows + i % rows) * width;
        for (int64_t j = 0; j < columns; ++j) {
          y[i * columns + j] = distance(from, b + (in_b * columns + j) * width, width, p);
        }
      }
    });
    return result.finish(context, out);
  });
}

Error _pdist_forward_out(Context& context, const Tensor& self, double p, Tensor& out) {
  ETX_CHECK(context, self.dim() == 2, InvalidArgument, "self must be a matrix");
  ETX_CHECK(context, p >= 0, InvalidArgument, "p must not be negative");
  ETX_CHECK(context, self.scalar_type() == out.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  ETX_CHECK(context, Floating::contains(self.scalar_type()), NotSupported,
            "pdist takes floating dtypes");
  const int64_t rows = self.size(0), width = self.size(1);
  Shape shape;
  shape.push(rows < 2 ? 0 : rows * (rows - 1) / 2);
  ETX_TRY(resize_out(context, out, shape));
  const ScalarType type = wide(out.scalar_type());
  return dispatch<is_computed>(ComputedFloating{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x;
    ResultOperand result;
    ETX_TRY(read_operand(context, self, type, x));
    ETX_TRY(result.prepare(context, out, type));
    T* y = result.data<T>();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = i + 1; j < rows; ++j) {
        *y++ = distance(x + i * width, x + j * width, width, p);
      }
    }
    return result.finish(context, out);
  });
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::_cdist_forward.out", _cdist_forward_out, Floating::bits),
    ETX_KERNEL("aten::_pdist_forward.out", _pdist_forward_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(cdist_kernels, kRows);

}  // namespace etx::portable
