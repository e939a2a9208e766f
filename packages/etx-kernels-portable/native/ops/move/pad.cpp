// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include <etx/kernel.h>

#include "core/convert.h"
#include "core/min_max.h"
#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

/// Elements added before and after each dimension; negative numbers remove elements.
struct Margins {
  int64_t low[kMaxRank] = {};
  int64_t high[kMaxRank] = {};
};

int64_t at_least_zero(int64_t v) { return max<int64_t>(v, 0); }

/// `pad` lists (low, high) of the last dimension first.
Error read_margins(Context& context, const Tensor& self, IntList pad, Margins& margins) {
  ETX_CHECK(context, pad.size() % 2 == 0 && pad.size() <= 2 * static_cast<size_t>(self.dim()),
            InvalidArgument, "padding must hold two numbers for each of the last dimensions");
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const ssize_t d = self.dim() - 1 - static_cast<ssize_t>(i);
    const int64_t low = pad[2 * i];
    const int64_t high = pad[2 * i + 1];
    ETX_CHECK(context, low > -INT32_MAX && low < INT32_MAX && high > -INT32_MAX && high < INT32_MAX,
              InvalidArgument, "padding must be less than 2147483647");
    margins.low[d] = low;
    margins.high[d] = high;
  }
  return Error::Ok;
}

Error resize_padded(Context& context, const Tensor& self, const Margins& margins,
                    const Tensor& out) {
  ETX_TRY(check_output(context, self, out));
  Shape shape;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    const int64_t size = self.size(d) + margins.low[d] + margins.high[d];
    const bool kept = margins.low[d] + self.size(d) >= 0 && margins.high[d] + self.size(d) >= 0;
    ETX_CHECK(context, size >= 0 && kept, InvalidArgument,
              "padding must not remove more elements than self has");
    shape.push(size);
  }
  return resize_out(context, out, shape);
}

/// The part of `self` that stays, copied to its place in `out`.
Error copy_interior(Context& context, const Tensor& self, const Margins& margins,
                    const Tensor& out) {
  StridedCopy copy;
  Checked to = 0;
  Checked from = 0;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    const int64_t low = margins.low[d];
    const int64_t high = margins.high[d];
    copy.add(self.size(d) - at_least_zero(-low) - at_least_zero(-high), out.stride(d),
             self.stride(d));
    to += Checked(at_least_zero(low)) * out.stride(d);
    from += Checked(at_least_zero(-low)) * self.stride(d);
  }
  return copy.run(context, Place(out, to), Place(self, from), self.element_size());
}

/// Where the slab of `count` elements at `start` of dimension `dim` gets its elements: the first
/// from element `from` of that dimension of `out`, the next `step` further.
struct Slab {
  ssize_t dim;
  int64_t start;
  int64_t count;
  int64_t from;
  int64_t step;
};

/// Fills a slab from `out` itself. Dimensions after `dim` are complete, those before it are not.
Error copy_slab(Context& context, const Margins& margins, const Slab& slab, const Tensor& out) {
  if (slab.count <= 0) return Error::Ok;
  StridedCopy copy;
  Checked corner = 0;
  for (ssize_t d = 0; d < out.dim(); ++d) {
    if (d == slab.dim) continue;
    const int64_t low = d < slab.dim ? at_least_zero(margins.low[d]) : 0;
    const int64_t high = d < slab.dim ? at_least_zero(margins.high[d]) : 0;
    copy.add(out.size(d) - low - high, out.stride(d), out.stride(d));
    corner += Checked(low) * out.stride(d);
  }
  const Checked stride = out.stride(slab.dim);
  copy.add(slab.count, stride, slab.step * stride);
  return copy.run(context, Place(out, corner + slab.start * stride),
                  Place(out, corner + slab.from * stride), out.element_size());
}

/// Fills the slabs of constant padding: as copy_slab, from one value.
Error fill_slab(Context& context, const Margins& margins, const Slab& slab, const void* value,
                const Tensor& out) {
  if (slab.count <= 0) return Error::Ok;
  StridedCopy copy;
  Checked corner = Checked(slab.start) * out.stride(slab.dim);
  copy.add(slab.count, out.stride(slab.dim), 0);
  for (ssize_t d = 0; d < out.dim(); ++d) {
    if (d == slab.dim) continue;
    const int64_t low = d < slab.dim ? at_least_zero(margins.low[d]) : 0;
    const int64_t high = d < slab.dim ? at_least_zero(margins.high[d]) : 0;
    copy.add(out.size(d) - low - high, out.stride(d), 0);
    corner += Checked(low) * out.stride(d);
  }
  return copy.run(context, Place(out, corner), Place(value, 1), out.element_size());
}

Error constant_pad_nd_out(Context& context, const Tensor& self, IntList pad, Scalar value,
                          Tensor& out) {
  Margins margins;
  alignas(16) char element[16];
  ETX_TRY(read_margins(context, self, pad, margins));
  ETX_TRY(resize_padded(context, self, margins, out));
  ETX_TRY(scalar_bytes(context, value, out.scalar_type(), element));
  ETX_TRY(copy_interior(context, self, margins, out));
  for (ssize_t d = out.dim() - 1; d >= 0; --d) {
    const int64_t low = margins.low[d];
    const int64_t high = margins.high[d];
    ETX_TRY(fill_slab(context, margins, {d, 0, low, 0, 0}, element, out));
    ETX_TRY(fill_slab(context, margins, {d, out.size(d) - high, high, 0, 0}, element, out));
  }
  return Error::Ok;
}

enum class Border { Reflect, Replicate };

/// The element of a dimension of `size` that is at `at` of the result, `low` elements after which
/// the dimension begins.
template <Border border>
int64_t source_of(int64_t at, int64_t low, int64_t size) {
  const int64_t from = at - low;
  if (border == Border::Reflect) {
    return from < 0 ? -from : (from < size ? from : 2 * (size - 1) - from);
  }
  return from < 0 ? 0 : (from < size ? from : size - 1);
}

/// Fills `out` element by element: the border may come from what negative margins remove.
template <Border border>
void copy_each(const Tensor& self, const Margins& margins, const Tensor& out) {
  const size_t width = self.element_size();
  char* const to = static_cast<char*>(out.mutable_data_ptr());
  const char* const from = static_cast<const char*>(self.const_data_ptr());
  for (int64_t i = 0; i < out.numel(); ++i) {
    int64_t left = i;
    int64_t place = 0;
    int64_t source = 0;
    for (ssize_t d = out.dim() - 1; d >= 0; --d) {
      const int64_t at = left % out.size(d);
      left /= out.size(d);
      place += at * out.stride(d);
      source += source_of<border>(at, margins.low[d], self.size(d)) * self.stride(d);
    }
    std::memcpy(to + place * static_cast<int64_t>(width),
                from + source * static_cast<int64_t>(width), width);
  }
}

/// Whether the border is made of elements that stay.
template <Border border>
bool stays_within(const Tensor& self, const Margins& margins) {
  for (ssize_t d = 0; d < self.dim(); ++d) {
    const int64_t low = margins.low[d];
    const int64_t high = margins.high[d];
    const int64_t kept = self.size(d) - at_least_zero(-low) - at_least_zero(-high);
    if (border == Border::Reflect ? low >= kept || high >= kept : kept <= 0) return false;
  }
  return true;
}

/// Resizes `out`; each padded dimension must have elements, and one of them keep some.
Error resize_bordered(Context& context, const Tensor& self, const Margins& margins, ssize_t dims,
                      bool reflected, const Tensor& out) {
  ETX_TRY(check_output(context, self, out));
  Shape shape;
  bool left = false;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    const int64_t size = self.size(d);
    const int64_t low = margins.low[d];
    const int64_t high = margins.high[d];
    if (d >= self.dim() - dims) {
      left = left || size + low + high > 0;
      ETX_CHECK(context, size > 0 && size + low + high >= 0, InvalidArgument,
                "padding must leave an element of self");
      ETX_CHECK(context, !reflected || (low < size && high < size), InvalidArgument,
                "padding must be less than self's size in that dimension");
    }
    shape.push(size + low + high);
  }
  ETX_CHECK(context, left, InvalidArgument, "padding must leave an element of self");
  return resize_out(context, out, shape);
}

template <Border border, ssize_t dims>
Error border_pad_out(Context& context, const Tensor& self, IntList padding, Tensor& out) {
  ETX_CHECK(context, self.dim() == dims + 1 || self.dim() == dims + 2, InvalidArgument,
            "self must have channels and the padded dimensions, and may have a batch");
  ETX_CHECK(context, padding.size() == 2 * dims, InvalidArgument,
            "padding must hold two numbers for each padded dimension");
  Margins margins;
  ETX_TRY(read_margins(context, self, padding, margins));
  ETX_TRY(resize_bordered(context, self, margins, dims, border == Border::Reflect, out));
  if (!stays_within<border>(self, margins)) {
    copy_each<border>(self, margins, out);
    return Error::Ok;
  }
  ETX_TRY(copy_interior(context, self, margins, out));
  for (ssize_t d = self.dim() - 1; d >= self.dim() - dims; --d) {
    const int64_t low = at_least_zero(margins.low[d]);
    const int64_t high = at_least_zero(margins.high[d]);
    const int64_t last = out.size(d) - high - 1;
    if constexpr (border == Border::Reflect) {
      ETX_TRY(copy_slab(context, margins, {d, 0, low, 2 * low, -1}, out));
      ETX_TRY(copy_slab(context, margins, {d, last + 1, high, last - 1, -1}, out));
    } else {
      ETX_TRY(copy_slab(context, margins, {d, 0, low, low, 0}, out));
      ETX_TRY(copy_slab(context, margins, {d, last + 1, high, last, 0}, out));
    }
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::constant_pad_nd.out", constant_pad_nd_out, kAnyDtype),
    ETX_KERNEL("aten::reflection_pad1d.out", (border_pad_out<Border::Reflect, 1>), kAnyDtype),
    ETX_KERNEL("aten::reflection_pad2d.out", (border_pad_out<Border::Reflect, 2>), kAnyDtype),
    ETX_KERNEL("aten::reflection_pad3d.out", (border_pad_out<Border::Reflect, 3>), kAnyDtype),
    ETX_KERNEL("aten::replication_pad1d.out", (border_pad_out<Border::Replicate, 1>), kAnyDtype),
    ETX_KERNEL("aten::replication_pad2d.out", (border_pad_out<Border::Replicate, 2>), kAnyDtype),
    ETX_KERNEL("aten::replication_pad3d.out", (border_pad_out<Border::Replicate, 3>), kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(pad_kernels, kRows);

}  // namespace etx::portable
