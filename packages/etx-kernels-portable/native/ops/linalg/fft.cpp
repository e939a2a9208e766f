// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"

namespace etx::portable {
namespace {

template <typename T>
struct Complex {
  T re, im;
  Complex operator*(Complex o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
  Complex operator+(Complex o) const { return {re + o.re, im + o.im}; }
  Complex operator*(T s) const { return {re * s, im * s}; }
};

/// A discrete Fourier transform of one length: Cooley and Tukey's recursion over the prime factors,
/// so that the effort is n times their sum.
template <typename T>
class Transform {
 public:
  /// `sign` -1: forward, 1: backward.
  Error prepare(Context& context, int64_t n, int sign) {
    n_ = n;
    ETX_ASSIGN(roots_, scratch<Complex<T>>(context, 4 * n,
                                           "not enough temporary memory for the transform"));
    const double angle = sign * 6.283185307179586477 / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) {
      const double at = angle * static_cast<double>(i);
      roots_[i] = {static_cast<T>(std::cos(at)), static_cast<T>(std::sin(at))};
    }
    return Error::Ok;
  }

  Complex<T>* input() const { return roots_ + n_; }
  const Complex<T>* output() const { return roots_ + 2 * n_; }
  void run() const { run(input(), 1, roots_ + 2 * n_, n_); }

 private:
  static int64_t smallest_factor(int64_t n) {
    for (int64_t p = 2; p * p <= n; ++p) {
      if (n % p == 0) return p;
    }
    return n;
  }

  void run(const Complex<T>* in, int64_t stride, Complex<T>* out, int64_t n) const {
    if (n == 1) {
      out[0] = in[0];
      return;
    }
    const int64_t p = smallest_factor(n), m = n / p;
    for (int64_t r = 0; r < p; ++r) run(in + r * stride, stride * p, out + r * m, m);
    Complex<T>* const part = roots_ + 3 * n_;
    for (int64_t k = 0; k < m; ++k) {
      for (int64_t r = 0; r < p; ++r) part[r] = out[r * m + k] * roots_[r * k * stride];
      for (int64_t q = 0; q < p; ++q) {
        Complex<T> sum = part[0];
        for (int64_t r = 1; r < p; ++r) sum = sum + part[r] * roots_[r * q % p * (n_ / p)];
        out[q * m + k] = sum;
      }
    }
  }

  int64_t n_ = 0;
  Complex<T>* roots_ = nullptr;
};

/// The lines of a row-major tensor along one dimension.
struct Lines {
  int64_t count = 1, size, stride = 1;
  Lines(const Tensor& tensor, ssize_t dim) : size(tensor.size(dim)) {
    for (ssize_t d = 0; d < tensor.dim(); ++d) count *= d == dim ? 1 : tensor.size(d);
    for (ssize_t d = dim + 1; d < tensor.dim(); ++d) stride *= tensor.size(d);
  }
  int64_t begin(int64_t line) const { return line / stride * size * stride + line % stride; }
};

/// Transforms in place along the dimension.
template <typename T>
Error transform_lines(Context& context, Complex<T>* x, const Lines& lines, int sign) {
  Transform<T> transform;
  ETX_TRY(transform.prepare(context, lines.size, sign));
  for (int64_t line = 0; line < lines.count; ++line) {
    Complex<T>* const at = x + lines.begin(line);
    for (int64_t i = 0; i < lines.size; ++i) transform.input()[i] = at[i * lines.stride];
    transform.run();
    for (int64_t i = 0; i < lines.size; ++i) at[i * lines.stride] = transform.output()[i];
  }
  return Error::Ok;
}

/// Checks `dim` and wraps it; at most one item per dimension of `tensor`.
struct Dims {
  ssize_t items[kMaxRank];
  size_t count = 0;
  Error read(Context& context, const Tensor& tensor, IntList dim) {
    bool seen[kMaxRank] = {};
    ETX_CHECK(context, !dim.empty() && dim.size() <= kMaxRank && tensor.dim() > 0, InvalidArgument,
              "dim must name at least one dimension of self");
    for (const int64_t item : dim) {
      ETX_TRY(wrap_dim(context, item, tensor.dim(), items[count]));
      ETX_CHECK(context, !seen[items[count]], InvalidArgument, "dim must not repeat itself");
      seen[items[count++]] = true;
    }
    return Error::Ok;
  }
  ssize_t last() const { return items[count - 1]; }
};

/// What results are multiplied with: by 1, 1 / sqrt(n) or 1 / n of all points transformed.
double scale_of(int64_t normalization, const Tensor& signal, const Dims& dims) {
  double points = 1;
  for (size_t i = 0; i < dims.count; ++i) points *= static_cast<double>(signal.size(dims.items[i]));
  if (normalization == 0) return 1;
  return 1 / (normalization == 1 ? std::sqrt(points) : points);
}

template <typename T>
Error real_to_complex(Context& context, const Tensor& self, const Dims& dims, double scale,
                      const Tensor& out) {
  const ScalarType type = self.scalar_type();
  const T* x;
  ResultOperand result;
  ETX_TRY(read_operand(context, self, type, x));
  ETX_TRY(result.prepare(context, out, out.scalar_type()));
  Complex<T>* const y = result.data<Complex<T>>();
  const Lines from(self, dims.last()), to(out, dims.last());
  Transform<T> transform;
  ETX_TRY(transform.prepare(context, from.size, -1));
  for (int64_t line = 0; line < from.count; ++line) {
    const T* const in = x + from.begin(line);
    for (int64_t i = 0; i < from.size; ++i) {
      transform.input()[i] = {in[i * from.stride] * static_cast<T>(scale), T{0}};
    }
    transform.run();
    Complex<T>* const at = y + to.begin(line);
    for (int64_t i = 0; i < to.size; ++i) at[i * to.stride] = transform.output()[i];
  }
  for (size_t i = 0; i + 1 < dims.count; ++i) {
    ETX_TRY(transform_lines(context, y, Lines(out, dims.items[i]), -1));
  }
  return result.finish(context, out);
}

Error _fft_r2c_out(Context& context, const Tensor& self, IntList dim, int64_t normalization,
                   bool onesided, Tensor& out) {
  Dims dims;
  ETX_TRY(dims.read(context, self, dim));
  const bool single = self.scalar_type() == ScalarType::Float;
  ETX_CHECK(context, single || self.scalar_type() == ScalarType::Double, NotSupported,
            "self must be float32 or float64");
  ETX_CHECK(context,
            out.scalar_type() == (single ? ScalarType::ComplexFloat : ScalarType::ComplexDouble),
            InvalidArgument, "out must be complex with the precision of self");
  ETX_CHECK(context, normalization >= 0 && normalization <= 2, InvalidArgument,
            "normalization must be 0, 1 or 2");
  Shape shape(self);
  const size_t last = static_cast<size_t>(dims.last());
  if (onesided) shape[last] = shape[last] / 2 + 1;
  ETX_TRY(resize_out(context, out, shape));
  if (self.numel() == 0) return Error::Ok;
  const double scale = scale_of(normalization, self, dims);
  return single ? real_to_complex<float>(context, self, dims, scale, out)
                : real_to_complex<double>(context, self, dims, scale, out);
}

template <typename T>
Error complex_to_real(Context& context, const Tensor& self, const Dims& dims, double scale,
                      const Tensor& out) {
  const Complex<T>* given;
  ResultOperand result;
  ETX_TRY(read_operand(context, self, self.scalar_type(), given));
  ETX_TRY(result.prepare(context, out, out.scalar_type()));
  ETX_ASSIGN(
      Complex<T>* const x,
      scratch<Complex<T>>(context, self.numel(), "not enough temporary memory for the transform"));
  for (int64_t i = 0; i < self.numel(); ++i) x[i] = given[i] * static_cast<T>(scale);
  for (size_t i = 0; i + 1 < dims.count; ++i) {
    ETX_TRY(transform_lines(context, x, Lines(self, dims.items[i]), 1));
  }
  const Lines from(self, dims.last()), to(out, dims.last());
  Transform<T> transform;
  ETX_TRY(transform.prepare(context, to.size, 1));
  for (int64_t line = 0; line < from.count; ++line) {
    const Complex<T>* const in = x + from.begin(line);
    for (int64_t i = 0; i <= to.size / 2; ++i) {
      const Complex<T> v = in[i * from.stride];
      transform.input()[i] = v;
      if (i > 0 && to.size - i > i) transform.input()[to.size - i] = {v.re, -v.im};
    }
    transform.run();
    T* const at = result.data<T>() + to.begin(line);
    for (int64_t i = 0; i < to.size; ++i) at[i * to.stride] = transform.output()[i].re;
  }
  return result.finish(context, out);
}

Error _fft_c2r_out(Context& context, const Tensor& self, IntList dim, int64_t normalization,
                   int64_t last_dim_size, Tensor& out) {
  Dims dims;
  ETX_TRY(dims.read(context, self, dim));
  const bool single = self.scalar_type() == ScalarType::ComplexFloat;
  ETX_CHECK(context, single || self.scalar_type() == ScalarType::ComplexDouble, NotSupported,
            "self must be complex64 or complex128");
  ETX_CHECK(context, out.scalar_type() == (single ? ScalarType::Float : ScalarType::Double),
            InvalidArgument, "out must be real with the precision of self");
  ETX_CHECK(context, normalization >= 0 && normalization <= 2, InvalidArgument,
            "normalization must be 0, 1 or 2");
  ETX_CHECK(context, last_dim_size >= 1 && last_dim_size / 2 + 1 <= self.size(dims.last()),
            InvalidArgument, "self must have last_dim_size / 2 + 1 elements in the last of dim");
  Shape shape(self);
  shape[static_cast<size_t>(dims.last())] = last_dim_size;
  ETX_TRY(resize_out(context, out, shape));
  if (out.numel() == 0) return Error::Ok;
  const double scale = scale_of(normalization, out, dims);
  return single ? complex_to_real<float>(context, self, dims, scale, out)
                : complex_to_real<double>(context, self, dims, scale, out);
}

template <typename T>
Error complex_to_complex(Context& context, const Tensor& self, const Dims& dims, double scale,
                         int sign, const Tensor& out) {
  const Complex<T>* x;
  ResultOperand result;
  ETX_TRY(read_operand(context, self, self.scalar_type(), x));
  ETX_TRY(result.prepare(context, out, out.scalar_type()));
  Complex<T>* const y = result.data<Complex<T>>();
  for (int64_t i = 0; i < self.numel(); ++i) y[i] = x[i] * static_cast<T>(scale);
  for (size_t i = 0; i < dims.count; ++i) {
    ETX_TRY(transform_lines(context, y, Lines(out, dims.items[i]), sign));
  }
  return result.finish(context, out);
}

Error _fft_c2c_out(Context& context, const Tensor& self, IntList dim, int64_t normalization,
                   bool forward, Tensor& out) {
  Dims dims;
  ETX_TRY(dims.read(context, self, dim));
  const bool single = self.scalar_type() == ScalarType::ComplexFloat;
  ETX_CHECK(context, single || self.scalar_type() == ScalarType::ComplexDouble, NotSupported,
            "self must be complex64 or complex128");
  ETX_CHECK(context, out.scalar_type() == self.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  ETX_CHECK(context, normalization >= 0 && normalization <= 2, InvalidArgument,
            "normalization must be 0, 1 or 2");
  ETX_TRY(resize_out(context, out, Shape(self)));
  if (self.numel() == 0) return Error::Ok;
  const double scale = scale_of(normalization, self, dims);
  const int sign = forward ? -1 : 1;
  return single ? complex_to_complex<float>(context, self, dims, scale, sign, out)
                : complex_to_complex<double>(context, self, dims, scale, sign, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::_fft_c2c.out", _fft_c2c_out),
    ETX_KERNEL("aten::_fft_r2c.out", _fft_r2c_out),
    ETX_KERNEL("aten::_fft_c2r.out", _fft_c2r_out),
};

}  // namespace

ETX_KERNEL_TABLE(fft_kernels, kRows);

}  // namespace etx::portable
