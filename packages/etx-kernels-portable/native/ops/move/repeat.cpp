// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

Error expand_copy_out(Context& context, const Tensor& self, IntList size, bool /*implicit*/,
                      Tensor& out) {
  const ssize_t added = static_cast<ssize_t>(size.size()) - self.dim();
  ETX_CHECK(context, added >= 0, InvalidArgument, "size must have at least the rank of self");
  Shape shape;
  for (size_t i = 0; i < size.size(); ++i) {
    const ssize_t d = static_cast<ssize_t>(i) - added;
    const bool kept = d >= 0 && (size[i] == -1 || size[i] == self.size(d));
    ETX_CHECK(context, kept || (size[i] >= 0 && (d < 0 || self.size(d) == 1)), InvalidArgument,
              "size must equal self's size, or be -1, wherever self's size is not 1");
    shape.push(kept ? self.size(d) : size[i]);
  }
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  for (ssize_t d = 0; d < out.dim(); ++d) {
    const bool repeated = d < added || self.size(d - added) == 1;
    copy.add(out.size(d), out.stride(d), repeated ? 0 : self.stride(d - added));
  }
  return copy.run(context, out, self, self.element_size());
}

Error repeat_out(Context& context, const Tensor& self, IntList repeats, Tensor& out) {
  const ssize_t added = static_cast<ssize_t>(repeats.size()) - self.dim();
  ETX_CHECK(context, added >= 0, InvalidArgument, "repeats must have at least the rank of self");
  Shape shape;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const ssize_t d = static_cast<ssize_t>(i) - added;
    ETX_CHECK(context, repeats[i] >= 0 && repeats[i] <= INT32_MAX, InvalidArgument,
              "repeats must be from 0 to 2147483647");
    shape.push(Checked(repeats[i]) * (d < 0 ? 1 : self.size(d)));
  }
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  for (ssize_t d = 0; d < out.dim(); ++d) {
    const int64_t size = d < added ? 1 : self.size(d - added);
    copy.add(repeats[static_cast<size_t>(d)], Checked(out.stride(d)) * size, 0);
    if (d >= added) copy.add(size, out.stride(d), self.stride(d - added));
  }
  return copy.run(context, out, self, self.element_size());
}

Error flip_out(Context& context, const Tensor& self, IntList dims, Tensor& out) {
  bool flipped[kMaxRank] = {};
  for (const int64_t item : dims) {
    ssize_t dim = 0;
    ETX_TRY(wrap_dim(context, item, self.dim(), dim));
    ETX_CHECK(context, !flipped[dim], InvalidArgument, "dims must not name a dimension twice");
    flipped[dim] = true;
  }
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(resize_out(context, out, Shape(self)));
  StridedCopy copy;
  Checked start = 0;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    copy.add(self.size(d), out.stride(d), flipped[d] ? -self.stride(d) : self.stride(d));
    if (flipped[d]) start += Checked(self.size(d) - 1) * self.stride(d);
  }
  return copy.run(context, out, Place(self, start), self.element_size());
}

int64_t wrap_shift(int64_t shift, int64_t size) {
  const int64_t rest = shift % size;
  return rest < 0 ? rest + size : rest;
}

/// Rolls the elements in the order of their indices.
Error roll_flat(Context& context, const Tensor& self, int64_t shift, const Tensor& out) {
  const int64_t count = self.numel();
  const int64_t head = wrap_shift(shift, count);
  const size_t size = self.element_size();
  const bool direct = out.is_contiguous();
  const void* flat = nullptr;
  ETX_TRY(row_major(context, self, flat));
  void* const rolled = direct ? out.mutable_data_ptr() : context.allocate_temp(out.nbytes());
  ETX_CHECK(context, rolled != nullptr, MemoryAllocationFailed,
            "no temporary memory to reorder the dimensions of out");
  StridedCopy low;
  low.add(count - head, 1, 1);
  ETX_TRY(low.run(context, Place(rolled, count, head), Place(flat, count), size));
  StridedCopy high;
  high.add(head, 1, 1);
  ETX_TRY(high.run(context, Place(rolled, count), Place(flat, count, count - head), size));
  return direct ? Error::Ok : from_row_major(context, out, rolled);
}

Error roll_out(Context& context, const Tensor& self, IntList shifts, IntList dims, Tensor& out) {
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(resize_out(context, out, Shape(self)));
  if (dims.empty()) {
    ETX_CHECK(context, shifts.size() == 1, InvalidArgument,
              "shifts must be one number when dims is empty");
    return self.numel() == 0 ? Error::Ok : roll_flat(context, self, shifts[0], out);
  }
  ETX_CHECK(context, shifts.size() == dims.size(), InvalidArgument,
            "shifts and dims must have the same length");
  if (self.numel() == 0) return Error::Ok;
  int64_t offset[kMaxRank] = {};
  for (size_t i = 0; i < dims.size(); ++i) {
    ssize_t dim = 0;
    ETX_TRY(wrap_dim(context, dims[i], self.dim(), dim));
    const int64_t size = size_of(self, dim);
    offset[dim] = wrap_shift(offset[dim] + wrap_shift(shifts[i], size), size);
  }
  // Each rolled dimension has two parts, so that 2^(rolled dimensions) boxes are moved.
  for (uint32_t box = 0; box < uint32_t{1} << self.dim(); ++box) {
    StridedCopy copy;
    Checked to = 0;
    Checked from = 0;
    for (ssize_t d = 0; d < self.dim(); ++d) {
      const bool wrapped = (box >> d) & 1;
      const int64_t size = wrapped ? offset[d] : self.size(d) - offset[d];
      copy.add(size, out.stride(d), self.stride(d));
      to += wrapped ? 0 : Checked(offset[d]) * out.stride(d);
      from += wrapped ? Checked(self.size(d) - offset[d]) * self.stride(d) : 0;
    }
    ETX_TRY(copy.run(context, Place(out, to), Place(self, from), self.element_size()));
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::expand_copy.out", expand_copy_out, kAnyDtype),
    ETX_KERNEL("aten::repeat.out", repeat_out, kAnyDtype),
    ETX_KERNEL("aten::flip.out", flip_out, kAnyDtype),
    ETX_KERNEL("aten::roll.out", roll_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(repeat_kernels, kRows);

}  // namespace etx::portable
