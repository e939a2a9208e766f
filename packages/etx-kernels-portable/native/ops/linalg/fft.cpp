// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <etx/kernel.h>

#include "core/complex.h"
#include "core/dispatch.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "core/work.h"
#include "isa/isa.h"
#include "ops/linalg/fft_passes.h"

namespace etx::portable {
namespace {

constexpr char kNoMemory[] = "not enough temporary memory for the transform";

/// The lines of a row-major tensor along one dimension.
struct Lines {
  int64_t count = 1, size, stride = 1;
  Lines(const Tensor& tensor, ssize_t dim) : size(tensor.size(dim)) {
    for (ssize_t d = 0; d < tensor.dim(); ++d) count *= d == dim ? 1 : tensor.size(d);
    for (ssize_t d = dim + 1; d < tensor.dim(); ++d) stride *= tensor.size(d);
  }
  int64_t begin(int64_t line) const { return line / stride * size * stride + line % stride; }
};

/// One side of a transform.
struct Side {
  Side(const void* elements, const Tensor& tensor, ssize_t dim)
      : data(const_cast<void*>(elements)),
        lines(tensor, dim),
        is_complex(portable::is_complex(tensor.scalar_type())) {}
  /// Reals are seen as complex numbers, `in_pairs` or without imaginary parts.
  void prepare(bool in_pairs) {
    next = is_complex ? 1 : in_pairs ? lines.stride : 0;
    step = lines.stride * (next > 0 ? 2 : 1);
  }
  template <typename T>
  T* begin(int64_t line) const {
    return static_cast<T*>(data) + (lines.begin(line) << static_cast<int>(is_complex));
  }

  void* data;
  Lines lines;
  bool is_complex;
  int64_t step = 0, next = 0;  ///< Between points and between the parts of one.
};

/// Transforms along one dimension. Where one side is real and n even, the numbers at even and odd
/// places are the parts of n / 2 complex ones.
class Transform {
 public:
  /// `from` and `to` may be the same.
  Error run(Context& context, bool is_single, Side from, Side to, bool forward, double scale) {
    is_single_ = is_single;
    n_ = from.is_complex ? to.lines.size : from.lines.size;
    is_half_ = from.is_complex != to.is_complex && n_ % 2 == 0;
    is_backward_ = !forward;
    from.prepare(is_half_);
    to.prepare(is_half_);
    scale_ = is_half_ && !from.is_complex ? scale / 2 : scale;
    const int64_t count = from.lines.count;
    const int64_t lanes =
        kIsSmall ? 1 : max<int64_t>(1, min(min(count, kMaxLanes), kCachedPoints / n_));
    const int64_t threads = min(useful_threads(context, count * n_ * 8), divide_up(count, lanes));
    const int64_t part = 4 * plane(lanes), roots = 2 * n_;
    const size_t size = is_single ? sizeof(float) : sizeof(double);
    roots_ = scratch_bytes(context, kNoMemory, roots + threads * part, size);
    if (roots_ == nullptr) return Error::MemoryAllocationFailed;
    set_roots();
    context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        char* const at =
            static_cast<char*>(roots_) + (roots + i * part) * static_cast<int64_t>(size);
        const Part mine(count, lanes, i, threads);
        for (int64_t line = mine.begin; line < mine.end; line += lanes) {
          const int64_t some = kIsSmall ? 1 : min(lanes, mine.end - line);
          is_single ? run_lines<float>(at, from, to, line, some)
                    : run_lines<double>(at, from, to, line, some);
        }
      }
    });
    return Error::Ok;
  }

 private:
  static constexpr int64_t kMaxLanes = 8;
  static constexpr int64_t kCachedPoints = 32 * 1024;

  int64_t plane(int64_t lanes) const { return (n_ + 1) * lanes + Passes<float>::kLanes; }

  template <typename T>
  Complex<T>* roots() const {
    return static_cast<Complex<T>*>(roots_);
  }

  Complex<double> root(int64_t i) const {
    const double at = -6.283185307179586477 / static_cast<double>(n_) * static_cast<double>(i);
    return {std::cos(at), std::sin(at)};
  }

  /// Products of two tables of roots, in double.
  void set_roots() const {
    constexpr int64_t kFine = 32;
    Complex<double> fine[kFine], coarse;
    for (int64_t i = 0; i < n_; ++i) {
      const int64_t at = i % kFine;
      if (at == 0) coarse = root(i);
      if (i < kFine) fine[i] = root(i);
      const Complex<double> z = coarse * fine[at];
      if (is_single_) {
        roots<float>()[i] = {static_cast<float>(z.re), static_cast<float>(z.im)};
      } else {
        roots<double>()[i] = z;
      }
    }
  }

  template <typename T>
  void run_lines(void* memory, const Side& from, const Side& to, int64_t line,
                 int64_t lanes) const {
    T* const at = static_cast<T*>(memory);
    const int64_t size = plane(lanes);
    Passes<T> passes{roots<T>(), {at, at + size}, {at + 2 * size, at + 3 * size}};
    Planes<T>& x = passes.x;
    const int64_t points = is_half_ ? n_ / 2 : n_;
    const int64_t given = !from.is_complex ? points : to.is_complex ? n_ : n_ / 2 + 1;
    const int64_t results = to.is_complex ? to.lines.size : points;
    load(x, from, line, given, lanes);
    if (!to.is_complex) complete(x, n_, lanes);
    if (is_backward_) std::swap(x.re, x.im);
    passes.run(points, is_half_ ? 2 : 1, lanes);
    if (is_backward_) std::swap(x.re, x.im);
    if (!from.is_complex) complete(x, results, lanes);
    store(x, to, line, results, lanes);
  }

  template <typename T>
  void load(Planes<T> x, const Side& from, int64_t line, int64_t rows, int64_t lanes) const {
    const T scale = static_cast<T>(scale_);
    for (int64_t l = 0; l < lanes; ++l) {
      const T* at = from.begin<T>(line + l);
      for (int64_t i = l; i < rows * lanes; i += lanes, at += from.step) {
        x.re[i] = *at * scale;
        x.im[i] = from.next > 0 ? at[from.next] * scale : T{0};
      }
    }
  }

  template <typename T>
  void store(Planes<T> x, const Side& to, int64_t line, int64_t rows, int64_t lanes) const {
    for (int64_t l = 0; l < lanes; ++l) {
      T* at = to.begin<T>(line + l);
      for (int64_t i = l; i < rows * lanes; i += lanes, at += to.step) {
        at[to.next] = x.im[i];
        *at = x.re[i];
      }
    }
  }

  /// Between the transform of a real line and that of its halves, in place; then the conjugates
  /// up to row `rows`.
  template <typename T>
  void complete(Planes<T> x, int64_t rows, int64_t lanes) const {
    const int64_t half = n_ / 2;
    if (is_half_) {
      for (int64_t l = 0; l < lanes; ++l) {
        x.re[half * lanes + l] = is_backward_ ? x.re[half * lanes + l] : x.re[l];
        x.im[half * lanes + l] = is_backward_ ? 0 : x.im[l];
        if (is_backward_) x.im[l] = 0;
      }
      for (int64_t k = 0; k <= half / 2; ++k) {
        const Complex<T> root = roots<T>()[k];
        const Complex<T> w{root.im, is_backward_ ? root.re : -root.re};
        for (int64_t i = k * lanes, j = (half - k) * lanes; i < (k + 1) * lanes; ++i, ++j) {
          const Complex<T> a{x.re[i], x.im[i]}, b{x.re[j], -x.im[j]};
          const Complex<T> sum = a + b, turned = (a - b) * w;
          x.re[i] = sum.re + turned.re;
          x.im[i] = sum.im + turned.im;
          x.re[j] = sum.re - turned.re;
          x.im[j] = turned.im - sum.im;
        }
      }
      if (is_backward_) return;
    }
    for (int64_t k = half + 1; k < rows; ++k) {
      for (int64_t i = k * lanes, j = (n_ - k) * lanes; i < (k + 1) * lanes; ++i, ++j) {
        x.re[i] = x.re[j];
        x.im[i] = -x.im[j];
      }
    }
  }

  int64_t n_ = 0;
  bool is_single_ = false, is_half_ = false, is_backward_ = false;
  double scale_ = 1;
  void* roots_ = nullptr;  ///< Then planes of each thread.
};

/// Along which dimensions, at most each one of a tensor, and what results are multiplied with:
/// by 1, 1 / sqrt(n) or 1 / n of all points transformed.
struct Dims {
  ssize_t items[kMaxRank];
  size_t count = 0;
  int64_t normalization = 0;
  /// Checks the arguments and wraps `dim`.
  Error read(Context& context, const Tensor& tensor, IntList dim, int64_t how) {
    normalization = how;
    bool seen[kMaxRank] = {};
    ETX_CHECK(context, how >= 0 && how <= 2, InvalidArgument, "normalization must be 0, 1 or 2");
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
  double scale(const Tensor& signal) const {
    double points = 1;
    for (size_t i = 0; i < count; ++i) points *= static_cast<double>(signal.size(items[i]));
    if (normalization == 0) return 1;
    return 1 / (normalization == 1 ? std::sqrt(points) : points);
  }
};

/// Along the dimensions in turn, the last one first, but last where reals come out.
Error transform(Context& context, const Tensor& self, const Dims& dims, bool forward,
                const Tensor& out) {
  const void* given;
  ResultOperand result;
  ETX_TRY(read_operand(context, self, self.scalar_type(), given));
  ETX_TRY(result.prepare(context, out, out.scalar_type()));
  const bool to_complex = is_complex(out.scalar_type());
  const bool is_single = part_of(self.scalar_type()) == ScalarType::Float;
  double scale = dims.scale(to_complex ? self : out);
  const Tensor& through = to_complex ? out : self;
  void* between = result.data<void>();
  if (!to_complex && dims.count > 1) {
    between = scratch_bytes(context, kNoMemory, 2 * self.numel(),
                            is_single ? sizeof(float) : sizeof(double));
    if (between == nullptr) return Error::MemoryAllocationFailed;
  }
  Transform transform;
  for (size_t i = 0; i < dims.count; ++i) {
    const bool is_first = i == 0, is_last = i + 1 == dims.count;
    const ssize_t dim = dims.items[to_complex ? dims.count - 1 - i : i];
    const Tensor& source = is_first ? self : through;
    const Tensor& target = is_last ? out : through;
    const Side from(is_first ? const_cast<void*>(given) : between, source, dim);
    const Side to(is_last ? result.data<void>() : between, target, dim);
    ETX_TRY(transform.run(context, is_single, from, to, forward, scale));
    scale = 1;
  }
  return result.finish(context, out);
}

Error _fft_r2c_out(Context& context, const Tensor& self, IntList dim, int64_t normalization,
                   bool onesided, Tensor& out) {
  Dims dims;
  ETX_TRY(dims.read(context, self, dim, normalization));
  const bool single = self.scalar_type() == ScalarType::Float;
  ETX_CHECK(context, single || self.scalar_type() == ScalarType::Double, NotSupported,
            "self must be float32 or float64");
  ETX_CHECK(context,
            out.scalar_type() == (single ? ScalarType::ComplexFloat : ScalarType::ComplexDouble),
            InvalidArgument, "out must be complex with the precision of self");
  Shape shape(self);
  const size_t last = static_cast<size_t>(dims.last());
  if (onesided) shape[last] = shape[last] / 2 + 1;
  ETX_TRY(resize_out(context, out, shape));
  if (self.numel() == 0) return Error::Ok;
  return transform(context, self, dims, true, out);
}

Error _fft_c2r_out(Context& context, const Tensor& self, IntList dim, int64_t normalization,
                   int64_t last_dim_size, Tensor& out) {
  Dims dims;
  ETX_TRY(dims.read(context, self, dim, normalization));
  const bool single = self.scalar_type() == ScalarType::ComplexFloat;
  ETX_CHECK(context, single || self.scalar_type() == ScalarType::ComplexDouble, NotSupported,
            "self must be complex64 or complex128");
  ETX_CHECK(context, out.scalar_type() == (single ? ScalarType::Float : ScalarType::Double),
            InvalidArgument, "out must be real with the precision of self");
  ETX_CHECK(context, last_dim_size >= 1 && last_dim_size / 2 + 1 <= self.size(dims.last()),
            InvalidArgument, "self must have last_dim_size / 2 + 1 elements in the last of dim");
  Shape shape(self);
  shape[static_cast<size_t>(dims.last())] = last_dim_size;
  ETX_TRY(resize_out(context, out, shape));
  if (out.numel() == 0) return Error::Ok;
  return transform(context, self, dims, false, out);
}

Error _fft_c2c_out(Context& context, const Tensor& self, IntList dim, int64_t normalization,
                   bool forward, Tensor& out) {
  Dims dims;
  ETX_TRY(dims.read(context, self, dim, normalization));
  const bool single = self.scalar_type() == ScalarType::ComplexFloat;
  ETX_CHECK(context, single || self.scalar_type() == ScalarType::ComplexDouble, NotSupported,
            "self must be complex64 or complex128");
  ETX_CHECK(context, out.scalar_type() == self.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  ETX_TRY(resize_out(context, out, Shape(self)));
  if (self.numel() == 0) return Error::Ok;
  return transform(context, self, dims, forward, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::_fft_c2c.out", _fft_c2c_out),
    ETX_KERNEL("aten::_fft_r2c.out", _fft_r2c_out),
    ETX_KERNEL("aten::_fft_c2r.out", _fft_c2r_out),
};

}  // namespace

ETX_KERNEL_TABLE(fft_kernels, kRows);

}  // namespace etx::portable
