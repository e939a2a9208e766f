// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include <etx/kernel.h>

#include "core/bytes_of.h"
#include "core/cast.h"
#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "core/strided_copy.h"
#include "core/work.h"
#include "isa/isa.h"

namespace etx::portable {
namespace {

/// One spatial dimension of an image that is resized.
struct Axis {
  int64_t in = 0;
  int64_t out = 0;
  double step = 0;  ///< Input positions per output position.
};

/// The size and step of height or width (`which` 0 or 1). As in ATen a scale does not count where
/// the size stays, or doubles while the nearest elements are taken.
Error make_axis(Context& context, const Tensor& input, const std::optional<IntList>& output_size,
                const std::optional<DoubleList>& scales, size_t which, bool align_corners,
                bool nearest, Axis& axis) {
  axis.in = input.size(static_cast<ssize_t>(which) + 2);
  if (output_size.has_value()) {
    axis.out = (*output_size)[which];
  } else {
    const double size = static_cast<double>(axis.in) * (*scales)[which];
    ETX_CHECK(context, size >= 0 && size <= INT32_MAX, InvalidArgument,
              "scale_factors must be positive");
    axis.out = static_cast<int64_t>(size);
  }
  ETX_CHECK(context, axis.in > 0 && axis.out > 0 && axis.out <= INT32_MAX, InvalidArgument,
            "height and width of input and out must be positive");
  const double in = static_cast<double>(axis.in);
  const double out = static_cast<double>(axis.out);
  if (align_corners) {
    axis.step = axis.out > 1 ? (in - 1) / (out - 1) : 0;
  } else if (axis.out == axis.in) {
    axis.step = 1;
  } else if (nearest && axis.out == 2 * axis.in) {
    axis.step = 0.5;
  } else if (!output_size.has_value() && (*scales)[which] > 0) {
    axis.step = 1.0 / (*scales)[which];
  } else {
    axis.step = in / out;
  }
  return Error::Ok;
}

Error prepare(Context& context, const Tensor& input, const std::optional<IntList>& output_size,
              const std::optional<DoubleList>& scales, bool align_corners, bool nearest,
              const Tensor& out, Axis& y, Axis& x) {
  ETX_CHECK(context, input.dim() == 4, InvalidArgument, "input must have 4 dimensions");
  ETX_CHECK(context, output_size.has_value() != scales.has_value(), InvalidArgument,
            "one of output_size and scale_factors must be given");
  const size_t given = output_size.has_value() ? output_size->size() : scales->size();
  ETX_CHECK(context, given == 2, InvalidArgument,
            "output_size or scale_factors must hold two numbers");
  ETX_TRY(check_output(context, input, out));
  ETX_TRY(make_axis(context, input, output_size, scales, 0, align_corners, nearest, y));
  ETX_TRY(make_axis(context, input, output_size, scales, 1, align_corners, nearest, x));
  Shape shape(input);
  shape[2] = y.out;
  shape[3] = x.out;
  return resize_out(context, out, shape);
}

/// For each output position the input position it copies.
Error nearest_table(Context& context, const Axis& axis, int32_t*& table) {
  ETX_ASSIGN(table,
             scratch<int32_t>(context, axis.out, "no temporary memory for the table of positions"));
  const float step = static_cast<float>(axis.step);
  for (int64_t i = 0; i < axis.out; ++i) {
    const int64_t position = static_cast<int64_t>(static_cast<float>(i) * step);
    table[i] = static_cast<int32_t>(min(position, axis.in - 1));
  }
  return Error::Ok;
}

/// True when the numbers of a pixel, and the pixels of a row, follow each other.
bool is_pixels(const Tensor& image) {
  return image.stride(1) == 1 && (image.size(3) == 1 || image.stride(3) == image.size(1));
}

/// Each element twice.
template <typename Word>
void double_row(const void* from, void* to, int64_t n) {
  const Word* const x = static_cast<const Word*>(from);
  Word* const y = static_cast<Word*>(to);
  for (int64_t i = 0; i < n; ++i) {
    const Word one = x[i];
    y[2 * i] = one;
    y[2 * i + 1] = one;
  }
}

/// One row of out, all from one row of input; strides in elements. `is_double`: each element twice.
template <typename T>
void nearest_row(const void* row, int64_t from_stride, void* out, int64_t to_stride,
                 const int32_t* columns, int64_t n, bool is_double) {
  const T* const from = static_cast<const T*>(row);
  T* const to = static_cast<T*>(out);
  if (!kIsSmall && is_double && from_stride == 1 && to_stride == 1) {
    double_row<typename WordOf<sizeof(T)>::Type>(from, to, n / 2);
  } else if (from_stride == 1 && to_stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[columns[i]];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[columns[i] * from_stride];
  }
}

Error upsample_nearest2d_vec_out(Context& context, const Tensor& input,
                                 std::optional<IntList> output_size,
                                 std::optional<DoubleList> scale_factors, Tensor& out) {
  Axis y;
  Axis x;
  int32_t* rows = nullptr;
  int32_t* columns = nullptr;
  ETX_TRY(prepare(context, input, output_size, scale_factors, false, true, out, y, x));
  if (out.numel() == 0) return Error::Ok;
  ETX_TRY(nearest_table(context, y, rows));
  ETX_TRY(nearest_table(context, x, columns));
  const int64_t channels = input.size(1);
  const bool pixels = channels > 1 && is_pixels(input) && is_pixels(out);
  const int64_t planes = input.size(0) * (pixels ? 1 : channels);
  const int64_t row_cost = x.out * (pixels ? channels : 1);
  auto make_row = &nearest_row<BytesOf<1>>;
  by_size(input.element_size(), [&](auto bytes) { make_row = &nearest_row<decltype(bytes)>; });
  const int64_t size = static_cast<int64_t>(input.element_size());
  const auto bytes_of = [size](const Tensor& of, ssize_t d) { return of.stride(d) * size; };
  const int64_t pixel = channels * size, line = row_cost * size, down = bytes_of(out, 2);
  const bool is_double = x.step == 0.5 && x.out == 2 * x.in;
  context.parallel_for(0, planes * y.out, 1 + 16384 / row_cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin, count; i < end; i += count) {
      const int64_t plane = i / y.out, first = i % y.out;
      count = min(end - i, y.out - first);
      const int64_t n = pixels ? plane : plane / channels;
      const int64_t c = pixels ? 0 : plane % channels;
      const char* const image =
          input.const_data_ptr<char>() + n * bytes_of(input, 0) + c * bytes_of(input, 1);
      char* to =
          out.mutable_data_ptr<char>() + n * bytes_of(out, 0) + c * bytes_of(out, 1) + first * down;
      for (int64_t row = first; row < first + count; ++row, to += down) {
        const char* const from = image + rows[row] * bytes_of(input, 2);
        if (row > first && rows[row] == rows[row - 1] && (pixels || out.stride(3) == 1)) {
          std::memmove(to, to - down, static_cast<size_t>(line));
        } else if (pixels) {
          for (int64_t k = 0; k < x.out; ++k) {
            std::memmove(to + k * pixel, from + columns[k] * pixel, static_cast<size_t>(pixel));
          }
        } else {
          make_row(from, input.stride(3), to, out.stride(3), columns, x.out, is_double);
        }
      }
    }
  });
  return Error::Ok;
}

/// The two input positions an output position lies between, and the weight of the second.
template <typename C>
struct Between {
  int32_t first;
  int32_t second;
  C weight;
};

template <typename C>
Error linear_table(Context& context, const Axis& axis, bool align_corners, Between<C>*& table) {
  ETX_ASSIGN(table, scratch<Between<C>>(context, axis.out,
                                        "no temporary memory for the table of positions"));
  const C step = static_cast<C>(axis.step);
  for (int64_t i = 0; i < axis.out; ++i) {
    const C at = static_cast<C>(i);
    const C raw = align_corners ? step * at : step * (at + C(0.5)) - C(0.5);
    const C position = max<C>(raw, 0);
    const int64_t near = static_cast<int64_t>(position);
    const int32_t first = static_cast<int32_t>(min(near, axis.in - 1));
    const C rest = position - static_cast<C>(first);
    const bool has_next = first < axis.in - 1 && axis.out != axis.in;
    table[i] = {first, first + (has_next ? 1 : 0), min<C>(rest, 1)};
  }
  return Error::Ok;
}

/// An image as linear_rows sees it: planes of rows of `width` numbers a pixel.
struct Layout {
  int64_t width;
  int64_t channels;    ///< Planes of an image.
  int64_t strides[3];  ///< Of images, planes and rows of the output.
};

/// Rows of a plane as C; those of another dtype are converted into memory for two rows of input,
/// which follow each other, and for one of output.
template <typename C>
struct PlaneRows {
  ScalarType dtype, as;
  int64_t length, out_length;
  const char* src;
  int64_t src_row;
  char* dst;
  int64_t dst_row;
  C* converted;
  int64_t held[2] = {-1, -1};

  bool is_direct() const { return dtype == as; }
  int64_t bytes(int64_t n) const { return n * static_cast<int64_t>(element_size(dtype)); }

  const C* row(int64_t i) {
    const char* const from = src + bytes(i * src_row);
    if (is_direct()) return reinterpret_cast<const C*>(from);
    C* const to = converted + i % 2 * length;
    if (held[i % 2] != i) cast(from, dtype, 1, to, as, length);
    held[i % 2] = i;
    return to;
  }
  C* out_row(int64_t r) const {
    if (is_direct()) return reinterpret_cast<C*>(dst + bytes(r * dst_row));
    return converted + 2 * length;
  }
  void finish(int64_t r, const C* from) const {
    if (!is_direct()) cast(from, as, 1, dst + bytes(r * dst_row), dtype, out_length);
  }
};

/// Interpolates rows [begin, end) of a plane: first between two rows of input into `line`, then
/// along it. A channels-last image has `width` numbers a pixel.
template <typename C>
void linear_rows(PlaneRows<C>& plane, const Between<C>* rows, const Between<C>* columns,
                 const Axis& x, int64_t width, C* line, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const C* const above = plane.row(rows[r].first);
    const C* const below = plane.row(rows[r].second);
    const C down = rows[r].weight;
    const C up = 1 - down;
    for (int64_t i = 0; i < plane.length; ++i) line[i] = up * above[i] + down * below[i];
    C* const to = plane.out_row(r);
    for (int64_t i = 0; width == 1 && i < x.out; ++i) {
      const C right = columns[i].weight;
      to[i] = (1 - right) * line[columns[i].first] + right * line[columns[i].second];
    }
    for (int64_t i = 0; width > 1 && i < x.out; ++i) {
      const C right = columns[i].weight;
      const C left = 1 - right;
      const C* const a = line + columns[i].first * width;
      const C* const b = line + columns[i].second * width;
      for (int64_t c = 0; c < width; ++c) to[i * width + c] = left * a[c] + right * b[c];
    }
    plane.finish(r, to);
  }
}

template <typename C>
Error linear(Context& context, const Tensor& input, const Axis& y, const Axis& x,
             bool align_corners, const Layout& layout, ScalarType as, char* dst) {
  Between<C>* rows = nullptr;
  Between<C>* columns = nullptr;
  ETX_TRY(linear_table(context, y, align_corners, rows));
  ETX_TRY(linear_table(context, x, align_corners, columns));
  const int64_t width = layout.width;
  const int64_t length = x.in * width, out_length = x.out * width;
  const int64_t parts = y.out * out_length < 16384 ? 1 : context.num_threads();
  const int64_t block = divide_up(y.out, parts);
  const int64_t tasks = input.size(0) * layout.channels * parts;
  const int64_t threads = context.num_threads();
  const int64_t slots = min(tasks, threads);
  const int64_t share = slots == 0 ? 0 : divide_up(tasks, slots);
  const ScalarType dtype = input.scalar_type();
  const int64_t room = length + (dtype == as ? 0 : 2 * length + out_length);
  ETX_ASSIGN(C* const lines,
             scratch<C>(context, slots * room, "no temporary memory for a row of the image"));
  context.parallel_for(0, slots, 1, [&](int64_t begin, int64_t end) {
    C* const line = lines + begin * room;
    for (int64_t task = begin * share; task < end * share && task < tasks; ++task) {
      const int64_t index = task / parts;
      const int64_t first = task % parts * block;
      const int64_t last = min(first + block, y.out);
      const int64_t n = index / layout.channels;
      const int64_t c = index % layout.channels;
      PlaneRows<C> plane{dtype,
                         as,
                         length,
                         out_length,
                         input.const_data_ptr<char>(),
                         input.stride(2),
                         dst,
                         layout.strides[2],
                         line + length};
      plane.src += plane.bytes(n * input.stride(0) + c * input.stride(1));
      plane.dst += plane.bytes(n * layout.strides[0] + c * layout.strides[1]);
      linear_rows(plane, rows, columns, x, width, line, first, last);
    }
  });
  return Error::Ok;
}

Error upsample_bilinear2d_vec_out(Context& context, const Tensor& input,
                                  std::optional<IntList> output_size, bool align_corners,
                                  std::optional<DoubleList> scale_factors, Tensor& out) {
  Axis y;
  Axis x;
  ETX_TRY(prepare(context, input, output_size, scale_factors, align_corners, false, out, y, x));
  if (out.numel() == 0) return Error::Ok;
  const bool planar = input.stride(3) == 1;
  ETX_CHECK(context, planar || is_pixels(input), NotSupported,
            "input must be contiguous or channels last");
  const int64_t channels = input.size(1);
  const int64_t area = y.out * x.out;
  const Layout layout = planar ? Layout{1, channels, {channels * area, area, x.out}}
                               : Layout{channels, 1, {channels * area, 0, channels * x.out}};
  static constexpr uint8_t kPixels[] = {0, 2, 3, 1};
  ResultOperand result;
  ETX_TRY(result.prepare(context, out, out.scalar_type(), planar ? nullptr : kPixels));
  const ScalarType dtype = input.scalar_type();
  ETX_CHECK(context, Floating::contains(dtype) && is_built(dtype), NotSupported,
            "the operator does not support the dtype of this tensor");
  const ScalarType as = wide(dtype);
  ETX_TRY(dispatch<is_computed>(context, ComputedFloating{}, as, [&](auto tag) {
    using C = typename decltype(tag)::type;
    return linear<C>(context, input, y, x, align_corners, layout, as, result.data<char>());
  }));
  return result.finish(context, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::upsample_nearest2d.vec_out", upsample_nearest2d_vec_out, kAnyDtype),
    ETX_KERNEL("aten::upsample_bilinear2d.vec_out", upsample_bilinear2d_vec_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(upsample_kernels, kRows);

}  // namespace etx::portable
