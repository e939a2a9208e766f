// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <type_traits>

#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "isa/simd.h"

namespace etx::portable {
namespace {

/// Along one axis of a bin; a map has fewer pixels.
constexpr int64_t kMostSamples = 1 << 20;
constexpr int64_t kMostOnMap = 1 << 25;  ///< Of a bin: each pixel of the largest maps.

/// Where a step of the arithmetic ends: in the dtype of the tensors, as torchvision's do. A step of
/// two floats in double has the same bits once it is rounded to float.
template <typename T>
double step_to(double x) {
  return static_cast<double>(static_cast<T>(static_cast<Compute<T>>(x)));
}
using Step = double (*)(double);

template <typename T>
float narrow(float x) {
  return static_cast<float>(static_cast<T>(x));
}
/// A sample along one axis: its two pixels and what each contributes; none outside of the map.
struct Point {
  int64_t low = 0, high = 0;
  double near = 0, far = 0;
  bool inside = false;
};

struct Region;

/// Arguments of the operator beside the tensors, and what depends on the dtype of these.
struct Options {
  double scale;
  int64_t height, width, ratio;
  int64_t map[2];
  bool aligned;
  Step step;
  float (*narrow)(float);
  void (*align)(const Region&, int64_t, int64_t);
  int64_t size;  ///< Of an element that is computed.
};

/// The bins of a region along one axis.
struct Axis {
  double begin, bin;
  int64_t bins, samples;
  Step step;

  Axis(double from, double to, int64_t count, const Options& o) : bins(count), step(o.step) {
    const double scale = step(o.scale), shift = o.aligned ? 0.5 : 0;
    begin = step(step(from * scale) - shift);
    const double length = step(step(step(to * scale) - shift) - begin);
    bin = step((!o.aligned && length < 1 ? 1 : length) / step(static_cast<double>(count)));
    const double adapted = min(kMostSamples + 1.0, std::ceil(bin));
    samples = o.ratio > 0 ? o.ratio : adapted > 0 ? static_cast<int64_t>(adapted) : 0;
  }

  double at(int64_t i, int64_t sample) const {
    const double first = step(begin + step(step(static_cast<double>(i)) * bin));
    const double into = step(step(static_cast<double>(sample) + 0.5) * bin);
    return step(first + step(into / step(static_cast<double>(samples))));
  }

  Point point(double at, int64_t size) const {
    Point found;
    if (!(at >= -1 && at <= static_cast<double>(size))) return found;
    found.inside = true;
    const double x = at <= 0 ? 0 : at;
    found.low = min(static_cast<int64_t>(x), size - 1);
    found.high = min(found.low + 1, size - 1);
    found.far = found.low == size - 1 ? 0 : step(x - static_cast<double>(found.low));
    found.near = step(1 - found.far);
    return found;
  }

  /// How many samples of bin i, whose positions only grow or only fall, come before `bound`, a
  /// position in their direction.
  int64_t count_before(int64_t i, double bound, bool with_bound) const {
    int64_t low = 0, high = samples;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      const double x = bin >= 0 ? at(i, middle) : -at(i, middle);
      const bool before = with_bound ? x <= bound : x < bound;
      (before ? low : high) = before ? middle + 1 : middle;
    }
    return low;
  }

  /// Most samples of a bin that lie on the map. Writes them to `to`, unless it is null, those of a
  /// bin side by side and `each` from the next one's.
  ETX_NOINLINE int64_t points(int64_t size, int64_t each, Point* to) const {
    const double last = static_cast<double>(size);
    int64_t most = 0;
    for (int64_t i = 0; i < bins; ++i) {
      const int64_t first = count_before(i, bin >= 0 ? -1 : -last, false);
      const int64_t count = count_before(i, bin >= 0 ? last : 1, true) - first;
      most = max(most, count);
      if (to == nullptr) continue;
      for (int64_t k = 0; k < each; ++k, ++to) {
        *to = k < count ? point(at(i, first + k), size) : Point();
      }
    }
    return most;
  }
};

/// The two axes of a row of rois, (image, left, top, right, bottom), and the most samples of a bin
/// that lie on the map along each.
struct Axes {
  Axis y, x;
  int64_t rows, columns;
  ETX_NOINLINE Axes(const double* roi, const Options& o)
      : y(roi[2], roi[4], o.height, o),
        x(roi[1], roi[3], o.width, o),
        rows(y.points(o.map[0], 0, nullptr)),
        columns(x.points(o.map[1], 0, nullptr)) {}
};

/// One region of an image: `rows` and `columns` are the points of its bins, which have `samples`.
struct Region {
  const Options& options;
  const Point *rows, *columns;
  int64_t grid_height, grid_width, samples;
  int64_t height, width;
  const void* image;  ///< Planes of height · width.
  void* out;          ///< Planes of bins.

  template <typename T, typename Round>
  T sum(const T* plane, int64_t bin_row, int64_t bin_column, Round round) const {
    T total = 0;
    for (int64_t i = 0; i < grid_height; ++i) {
      const Point& y = rows[bin_row * grid_height + i];
      if (!y.inside) continue;
      const T near = static_cast<T>(y.near), far = static_cast<T>(y.far);
      const T *const low = plane + y.low * width, *const high = plane + y.high * width;
      for (int64_t j = 0; j < grid_width; ++j) {
        const Point& x = columns[bin_column * grid_width + j];
        if (!x.inside) continue;
        const T left = static_cast<T>(x.near), right = static_cast<T>(x.far);
        const T top = round(round(round(near * left) * low[x.low]) +
                            round(round(near * right) * low[x.high]));
        const T three = round(top + round(round(far * left) * high[x.low]));
        total = round(total + round(three + round(round(far * right) * high[x.high])));
      }
    }
    return total;
  }

  /// The bins of channels [begin, end).
  template <typename T, typename Round>
  void align(int64_t begin, int64_t end, Round round) const {
    const T divisor = round(static_cast<T>(max(samples, int64_t{1})));
    T* bin = static_cast<T*>(out) + begin * options.height * options.width;
    for (int64_t c = begin; c < end; ++c) {
      const T* const plane = static_cast<const T*>(image) + c * height * width;
      for (int64_t y = 0; y < options.height; ++y) {
        for (int64_t x = 0; x < options.width; ++x) {
          *bin++ = round(sum(plane, y, x, round) / divisor);
        }
      }
    }
  }
};

template <typename T>
void align(const Region& region, int64_t begin, int64_t end) {
  if constexpr (std::is_same_v<Compute<T>, T>) {
    region.align<T>(begin, end, [](T x) { return x; });
  } else {
    region.align<float>(begin, end, region.options.narrow);
  }
}

/// Aligns `count` regions with the images, both in rows.
Error align_all(Context& context, const Tensor& input, const char* images, const double* rois,
                int64_t count, const Options& options, char* to) {
  const int64_t channels = input.size(1), height = input.size(2), width = input.size(3);
  int64_t most_rows = 0, most_columns = 0;
  for (int64_t r = 0; r < count; ++r) {
    const double image = rois[5 * r];
    ETX_CHECK(context, image >= 0 && image < static_cast<double>(input.size(0)), InvalidArgument,
              "the first column of rois must be the index of an image of input");
    const Axes axes(rois + 5 * r, options);
    ETX_CHECK(context, axes.y.samples <= kMostSamples && axes.x.samples <= kMostSamples,
              InvalidArgument,
              "sampling_ratio and the bins of rois must be of at most 2^20 pixels");
    ETX_CHECK(context, axes.rows * axes.columns <= kMostOnMap, InvalidArgument,
              "a bin must have at most 2^25 samples on the image: lower sampling_ratio");
    most_rows = max(most_rows, axes.rows);
    most_columns = max(most_columns, axes.columns);
  }
  const int64_t all_rows = (Checked(options.height) * most_rows).value_or(-1);
  const int64_t all_columns = (Checked(options.width) * most_columns).value_or(-1);
  const char* const reason = "no temporary memory for the samples of the largest of rois";
  ETX_ASSIGN(Point* const rows, scratch<Point>(context, all_rows, reason));
  ETX_ASSIGN(Point* const columns, scratch<Point>(context, all_columns, reason));
  const int64_t image_size = channels * height * width * options.size;
  const int64_t out_size = channels * options.height * options.width * options.size;
  for (int64_t r = 0; r < count; ++r) {
    const Axes axes(rois + 5 * r, options);
    axes.y.points(height, axes.rows, rows);
    axes.x.points(width, axes.columns, columns);
    const void* const image = images + static_cast<int64_t>(rois[5 * r]) * image_size;
    const int64_t samples = axes.y.samples * axes.x.samples;
    const Region region{options, rows,   columns, axes.rows, axes.columns,
                        samples, height, width,   image,     to + r * out_size};
    context.parallel_for(0, channels, 1,
                         [&](int64_t begin, int64_t end) { options.align(region, begin, end); });
  }
  return Error::Ok;
}

/// out[r] = the bins of region r of rois, each the mean of samples between pixels of its image.
Error roi_align_out(Context& context, const Tensor& input, const Tensor& rois, double spatial_scale,
                    int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio,
                    bool aligned, Tensor& out) {
  ETX_CHECK(context, input.dim() == 4, InvalidArgument, "input must be (N, C, H, W)");
  ETX_CHECK(context, rois.dim() == 2 && rois.size(1) == 5, InvalidArgument,
            "rois must be (K, 5): image, left, top, right, bottom");
  ETX_CHECK(context, pooled_height > 0 && pooled_width > 0, InvalidArgument,
            "pooled_height and pooled_width must be positive");
  ETX_CHECK(context,
            input.scalar_type() == out.scalar_type() && rois.scalar_type() == out.scalar_type(),
            InvalidArgument, "input, rois and out must have the same dtype");
  Shape shape;
  for (const int64_t size :
       {int64_t{rois.size(0)}, int64_t{input.size(1)}, pooled_height, pooled_width}) {
    shape.push(size);
  }
  ETX_TRY(resize_out(context, out, shape));
  if (out.numel() == 0) return Error::Ok;
  ETX_CHECK(context, input.size(2) > 0 && input.size(3) > 0, InvalidArgument,
            "the spatial dimensions of input must not be empty");
  Options options{spatial_scale,
                  pooled_height,
                  pooled_width,
                  sampling_ratio,
                  {input.size(2), input.size(3)},
                  aligned,
                  {},
                  {},
                  {},
                  {}};
  ETX_TRY(dispatch(context, Floating{}, out.scalar_type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    options.step = step_to<T>;
    options.narrow = narrow<T>;
    options.align = align<T>;
    options.size = sizeof(Compute<T>);
    return Error::Ok;
  }));
  const ScalarType type = wide(out.scalar_type());
  const void* images;
  const double* regions;
  ResultOperand result;
  ETX_TRY(read_operand(context, input, type, images));
  ETX_TRY(read_operand(context, rois, ScalarType::Double, regions));
  ETX_TRY(result.prepare(context, out, type));
  ETX_TRY(align_all(context, input, static_cast<const char*>(images), regions, rois.size(0),
                    options, result.data<char>()));
  return result.finish(context, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("torchvision::roi_align.out", roi_align_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(roi_align_kernels, kRows);

}  // namespace etx::portable
