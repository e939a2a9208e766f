// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/operand.h"
#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

int64_t wrap_shift(int64_t shift, int64_t size) {
  const int64_t rest = shift % size;
  return rest < 0 ? rest + size : rest;
}

/// Rolls the elements in the order of their indices.
Error roll_flat(Context& context, const Tensor& self, int64_t shift, const Tensor& out) {
  const int64_t count = self.numel();
  const int64_t head = wrap_shift(shift, count);
  const size_t size = self.element_size();
  const void* flat = nullptr;
  ETX_TRY(row_major(context, self, flat));
  ResultOperand result;
  ETX_TRY(result.prepare(context, out, out.scalar_type()));
  char* const rolled = result.data<char>();
  StridedCopy low;
  low.add(count - head, 1, 1);
  ETX_TRY(low.run(context, Place(rolled, count, head), Place(flat, count), size));
  StridedCopy high;
  high.add(head, 1, 1);
  ETX_TRY(high.run(context, Place(rolled, count), Place(flat, count, count - head), size));
  return result.finish(context, out);
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
    ETX_KERNEL("aten::roll.out", roll_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(roll_kernels, kRows);

}  // namespace etx::portable
