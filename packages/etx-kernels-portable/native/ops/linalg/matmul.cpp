// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/loops.h"
#include "core/operand.h"
#include "core/shape.h"
#include "ops/linalg/gemm.h"
#include "ops/linalg/pair_product.h"
#include "ops/linalg/product.h"

namespace etx::portable {
namespace {

/// True where a few rows times a k x n matrix of `type` are sums of its rows, read as they lie: of
/// float32 only one row, and a matrix that the caches do not keep.
bool sums_rows(ScalarType type, int64_t m, int64_t k, int64_t n) {
  constexpr int64_t kFew = 8, kShort = 32, kLarge = 65536;
  if (n < kShort) return false;
  return type == ScalarType::Float ? m == 1 && k >= kLarge / n : m <= kFew;
}

template <typename T>
Error multiply_any(Context& context, const T* a, const T* b, T* c, int64_t batch, int64_t m,
                   int64_t k, int64_t n) {
  if (batch == 0 || m == 0 || n == 0) return Error::Ok;
  if constexpr (std::is_same_v<T, float>) {
    return batch == 1 ? multiply(context, a, b, nullptr, c, m, k, n)
                      : multiply_batch(context, a, b, c, batch, m, k, n);
  } else {
    return multiply_matrices(context, a, b, c, batch, m, k, n);
  }
}

constexpr char kDepth[] = "the last dimensions must be of one size";

Error check_operands(Context& context, const Tensor& a, const Tensor& b, const Tensor& out,
                     ssize_t rank) {
  ETX_CHECK(context, a.dim() == rank && b.dim() == rank, InvalidArgument,
            "the operands must be matrices (for bmm: batches of matrices)");
  ETX_CHECK(context, rank == 2 || a.size(0) == b.size(0), InvalidArgument,
            "self and mat2 must have the same batch size");
  ETX_CHECK(context, a.scalar_type() == b.scalar_type() && a.scalar_type() == out.scalar_type(),
            InvalidArgument, "operands and out must have the same dtype");
  ETX_CHECK(context, Real::contains(a.scalar_type()), NotSupported,
            "the operator takes floating and integer dtypes");
  return Error::Ok;
}

Error check_matrices(Context& context, const Tensor& a, const Tensor& b, const Tensor& out,
                     ssize_t rank) {
  ETX_TRY(check_operands(context, a, b, out, rank));
  ETX_CHECK(context, a.size(rank - 1) == b.size(rank - 2), InvalidArgument,
            "the columns of the first matrix must be as many as the rows of the second");
  return Error::Ok;
}

Error matrix_product(Context& context, const Tensor& a, const Tensor& b, const Tensor& out) {
  const ssize_t rank = a.dim();
  ETX_TRY(check_matrices(context, a, b, out, rank));
  Shape shape;
  if (rank == 3) shape.push(a.size(0));
  shape.push(a.size(rank - 2));
  shape.push(b.size(rank - 1));
  ETX_TRY(resize_out(context, out, shape));
  const ScalarType type = multiplied_as(a.scalar_type());
  return dispatch<is_multiplied>(Multiplied{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *lhs, *rhs;
    ResultOperand result;
    ETX_TRY(result.prepare(context, out, type));
    const int64_t batch = rank == 3 ? a.size(0) : 1, m = a.size(rank - 2);
    const int64_t k = a.size(rank - 1), n = b.size(rank - 1);
    if (const auto loop = few_rows<T>(b.scalar_type()).accumulate;
        loop != nullptr && sums_rows(b.scalar_type(), m, k, n)) {
      const void* as_it_lies;
      ETX_TRY(read_operand(context, a, type, lhs));
      ETX_TRY(read_operand(context, b, b.scalar_type(), as_it_lies));
      ETX_TRY(accumulate_matrices<T>(context, loop, lhs, as_it_lies,
                                     static_cast<int64_t>(b.element_size()), result.data<T>(),
                                     batch, m, k, n));
      return result.finish(context, out);
    }
    if constexpr (std::is_same_v<T, float>) {
      if (const Pairs* const pairs = pairs_for(b.scalar_type(), k); pairs != nullptr && n > 0) {
        const void *left, *right;
        ETX_TRY(read_operand(context, a, b.scalar_type(), left));
        ETX_TRY(read_operand(context, b, b.scalar_type(), right));
        ETX_TRY(multiply_pairs(context, *pairs, left, right, nullptr, result.data<T>(), batch, m, k,
                               n));
        return result.finish(context, out);
      }
    }
    ETX_TRY(read_operand(context, a, type, lhs));
    ETX_TRY(read_operand(context, b, type, rhs));
    ETX_TRY(multiply_any(context, lhs, rhs, result.data<T>(), batch, m, k, n));
    return result.finish(context, out);
  });
}

Error mm_out(Context& context, const Tensor& self, const Tensor& mat2, Tensor& out) {
  ETX_CHECK(context, self.dim() == 2, InvalidArgument, "self must be a matrix");
  return matrix_product(context, self, mat2, out);
}

Error bmm_out(Context& context, const Tensor& self, const Tensor& mat2, Tensor& out) {
  ETX_CHECK(context, self.dim() == 3, InvalidArgument, "self must be a batch of matrices");
  return matrix_product(context, self, mat2, out);
}

template <typename T>
T factor(const Scalar& value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(value.to<int64_t>());
  else
    return value.to<T>();
}

/// c = alpha c + beta self, where self is broadcast by its strides.
template <typename T>
void add_scaled_matrix(const T* self, int64_t row_stride, int64_t column_stride, T beta, T alpha,
                       T* c, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; ++i) {
    const T* const from = self + i * row_stride;
    T* const to = c + i * n;
    for (int64_t j = 0; j < n; ++j) {
      to[j] = times(alpha, to[j]);
      if (beta != T{0}) to[j] = static_cast<T>(to[j] + times(beta, from[j * column_stride]));
    }
  }
}

/// What is multiplied by zero is not computed, as BLAS leaves it out: infinities in it have no
/// effect.
bool leaves_out_product(const Scalar& alpha, ScalarType type) {
  return alpha.to<double>() == 0 && (type == ScalarType::Float || type == ScalarType::Double);
}

/// addmm = beta self + alpha (mat1 mat2).
Error addmm_out(Context& context, const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                const Scalar& beta, const Scalar& alpha, Tensor& out) {
  ETX_TRY(check_matrices(context, mat1, mat2, out, 2));
  const int64_t m = mat1.size(0), k = mat1.size(1), n = mat2.size(1);
  const ssize_t rank = self.dim();
  const int64_t rows = rank == 2 ? self.size(0) : 1;
  const int64_t columns = rank == 0 ? 1 : (rank <= 2 ? self.size(rank - 1) : 0);
  ETX_CHECK(context, rank <= 2 && (rows == m || rows == 1) && (columns == n || columns == 1),
            InvalidArgument, "self must be broadcastable to the shape of mat1 @ mat2");
  ETX_CHECK(context, self.scalar_type() == out.scalar_type(), InvalidArgument,
            "self and out must have the same dtype");
  Shape shape;
  shape.push(m);
  shape.push(n);
  ETX_TRY(resize_out(context, out, shape));
  if (out.numel() == 0) return Error::Ok;
  const ScalarType type = multiplied_as(out.scalar_type());
  return dispatch<is_multiplied>(Multiplied{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *lhs, *rhs, *added;
    ResultOperand result;
    ETX_TRY(read_operand(context, mat1, type, lhs));
    ETX_TRY(read_operand(context, mat2, type, rhs));
    ETX_TRY(read_operand(context, self, type, added));
    ETX_TRY(result.prepare(context, out, type));
    const int64_t depth = leaves_out_product(alpha, out.scalar_type()) ? 0 : k;
    ETX_TRY(multiply_any(context, lhs, rhs, result.data<T>(), 1, m, depth, n));
    add_scaled_matrix(added, rows == 1 ? 0 : columns, columns == 1 ? 0 : 1, factor<T>(beta),
                      factor<T>(alpha), result.data<T>(), m, n);
    return result.finish(context, out);
  });
}

Error check_linear(Context& context, const Tensor& input, const Tensor& weight,
                   const std::optional<Tensor>& bias, const Tensor& out) {
  ETX_CHECK(context, input.dim() >= 1 && (weight.dim() == 2 || weight.dim() == 1), InvalidArgument,
            "input must have a dimension, weight must be (out, in) or (in)");
  ETX_CHECK(context, input.size(-1) == weight.size(-1), InvalidArgument, kDepth);
  ETX_CHECK(context,
            input.scalar_type() == weight.scalar_type() && input.scalar_type() == out.scalar_type(),
            InvalidArgument, "input, weight and out must have the same dtype");
  ETX_CHECK(context, Real::contains(input.scalar_type()), NotSupported,
            "linear takes floating and integer dtypes");
  if (!bias.has_value()) return Error::Ok;
  const int64_t n = weight.dim() == 2 ? weight.size(0) : 1;
  ETX_CHECK(context, bias->numel() == n && bias->dim() <= 1, InvalidArgument,
            "bias must have one element per row of weight");
  ETX_CHECK(context, bias->scalar_type() == out.scalar_type(), InvalidArgument,
            "bias and out must have the same dtype");
  return Error::Ok;
}

/// `batch` products of matrices that follow each other: m x k by n x k, transposed.
struct ByRows {
  int64_t batch, m, k, n;
};

/// y = x w^T + bias, where there is a bias of n values or null.
template <typename T>
Error multiply_by_rows(Context& context, const Tensor& x, const Tensor& w, ScalarType type,
                       const T* bias, T* y, const ByRows& s) {
  const ScalarType dtype = w.scalar_type();
  const void* rows;
  ETX_TRY(read_operand(context, w, dtype, rows));
  if (s.batch == 0 || s.m == 0 || s.n == 0) return Error::Ok;
  const int64_t left = s.m * s.k, right = s.n * s.k, made = s.m * s.n;
  const auto bytes = static_cast<int64_t>(w.element_size());
  const auto matrix = [&](const void* from, int64_t elements) {
    return static_cast<const char*>(from) + elements * bytes;
  };
  if constexpr (std::is_same_v<T, float>) {
    if (pairs_for(dtype, s.k) != nullptr && s.m > dot_rows()) {
      const void* raw;
      ETX_TRY(read_operand(context, x, dtype, raw));
      for (int64_t i = 0; i < s.batch; ++i) {
        ETX_TRY(multiply_weight_pairs(context, matrix(raw, i * left), matrix(rows, i * right), bias,
                                      y + i * made, s.m, s.k, s.n));
      }
      return Error::Ok;
    }
  }
  const T* lhs;
  ETX_TRY(read_operand(context, x, type, lhs));
  if constexpr (std::is_same_v<T, float>) {
    if (!kHalvesBuilt || dtype == type) {
      const float* const rhs = static_cast<const float*>(rows);
      return s.batch == 1 ? multiply_transposed(context, lhs, rhs, bias, y, s.m, s.k, s.n)
                          : multiply_transposed_batch(context, lhs, rhs, y, s.batch, s.m, s.k, s.n);
    }
  }
  if constexpr (!std::is_same_v<T, float> || kHalvesBuilt) {
    for (int64_t i = 0; i < s.batch; ++i) {
      ETX_TRY(multiply_weight(context, lhs + i * left, matrix(rows, i * right), dtype, type, bias,
                              y + i * made, s.m, s.k, s.n));
    }
  }
  return Error::Ok;
}

/// out = x w^T + bias, of each pair of matrices.
Error product_by_rows(Context& context, const Tensor& x, const Tensor& w,
                      const std::optional<Tensor>& bias, const Tensor& out, const ByRows& s) {
  const ScalarType type = multiplied_as(out.scalar_type());
  return dispatch<is_multiplied>(Multiplied{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* b;
    ResultOperand result;
    ETX_TRY(read_operand(context, bias, type, b));
    ETX_TRY(result.prepare(context, out, type));
    ETX_TRY(multiply_by_rows(context, x, w, type, b, result.data<T>(), s));
    return result.finish(context, out);
  });
}

/// linear = input weight^T + bias.
Error linear_out(Context& context, const Tensor& input, const Tensor& weight,
                 const std::optional<Tensor>& bias, Tensor& out) {
  ETX_TRY(check_linear(context, input, weight, bias, out));
  ByRows s{1, 1, input.size(-1), weight.dim() == 2 ? weight.size(0) : 1};
  Shape shape;
  for (ssize_t d = 0; d + 1 < input.dim(); ++d) {
    shape.push(input.size(d));
    s.m *= input.size(d);
  }
  if (weight.dim() == 2) shape.push(s.n);
  ETX_TRY(resize_out(context, out, shape));
  return product_by_rows(context, input, weight, bias, out, s);
}

/// bmm_nt = self mat2^T, matrix by matrix.
Error bmm_nt_out(Context& context, const Tensor& self, const Tensor& mat2, Tensor& out) {
  ETX_TRY(check_operands(context, self, mat2, out, 3));
  ETX_CHECK(context, self.size(2) == mat2.size(2), InvalidArgument, kDepth);
  const ByRows s{self.size(0), self.size(1), self.size(2), mat2.size(1)};
  Shape shape;
  shape.push(s.batch), shape.push(s.m), shape.push(s.n);
  ETX_TRY(resize_out(context, out, shape));
  return product_by_rows(context, self, mat2, std::nullopt, out, s);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::mm.out", mm_out, Real::bits),
    ETX_KERNEL("aten::bmm.out", bmm_out, Real::bits),
    ETX_KERNEL("etx::bmm_nt.out", bmm_nt_out, Real::bits),
    ETX_KERNEL("aten::addmm.out", addmm_out, Real::bits),
    ETX_KERNEL("aten::linear.out", linear_out, Real::bits),
};

}  // namespace

ETX_KERNEL_TABLE(matmul_kernels, kRows);

}  // namespace etx::portable
