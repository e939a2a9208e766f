// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

Error pixel_shuffle_out(Context& context, const Tensor& self, int64_t factor, Tensor& out) {
  const ssize_t rank = self.dim();
  ETX_CHECK(context, rank >= 3 && factor > 0 && factor <= INT16_MAX, InvalidArgument,
            "self must have at least 3 dimensions and upscale_factor must be from 1 to 32767");
  ETX_CHECK(context, self.size(rank - 3) % (factor * factor) == 0, InvalidArgument,
            "the channels of self must be a multiple of upscale_factor squared");
  ETX_TRY(check_output(context, self, out));
  const size_t c = static_cast<size_t>(rank) - 3;
  Shape shape(self);
  shape[c] /= factor * factor;
  shape[c + 1] *= factor;
  shape[c + 2] *= factor;
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  for (ssize_t d = 0; d < rank - 3; ++d) copy.add(self.size(d), out.stride(d), self.stride(d));
  const Checked channel = self.stride(rank - 3);
  copy.add(out.size(rank - 3), out.stride(rank - 3), channel * factor * factor);
  copy.add(factor, out.stride(rank - 2), channel * factor);
  copy.add(factor, out.stride(rank - 1), channel);
  copy.add(self.size(rank - 2), Checked(out.stride(rank - 2)) * factor, self.stride(rank - 2));
  copy.add(self.size(rank - 1), Checked(out.stride(rank - 1)) * factor, self.stride(rank - 1));
  return copy.run(context, out, self, self.element_size());
}

Error pixel_unshuffle_out(Context& context, const Tensor& self, int64_t factor, Tensor& out) {
  const ssize_t rank = self.dim();
  ETX_CHECK(context, rank >= 3 && factor > 0 && factor <= INT16_MAX, InvalidArgument,
            "self must have at least 3 dimensions and downscale_factor must be from 1 to 32767");
  ETX_CHECK(context, self.size(rank - 2) % factor == 0 && self.size(rank - 1) % factor == 0,
            InvalidArgument, "height and width of self must be multiples of downscale_factor");
  ETX_TRY(check_output(context, self, out));
  const size_t c = static_cast<size_t>(rank) - 3;
  Shape shape(self);
  shape[c] *= factor * factor;
  shape[c + 1] /= factor;
  shape[c + 2] /= factor;
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  for (ssize_t d = 0; d < rank - 3; ++d) copy.add(self.size(d), out.stride(d), self.stride(d));
  const Checked channel = out.stride(rank - 3);
  copy.add(self.size(rank - 3), channel * factor * factor, self.stride(rank - 3));
  copy.add(factor, channel * factor, self.stride(rank - 2));
  copy.add(factor, channel, self.stride(rank - 1));
  copy.add(out.size(rank - 2), out.stride(rank - 2), Checked(self.stride(rank - 2)) * factor);
  copy.add(out.size(rank - 1), out.stride(rank - 1), Checked(self.stride(rank - 1)) * factor);
  return copy.run(context, out, self, self.element_size());
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::pixel_shuffle.out", pixel_shuffle_out, kAnyDtype),
    ETX_KERNEL("aten::pixel_unshuffle.out", pixel_unshuffle_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(pixel_shuffle_kernels, kRows);

}  // namespace etx::portable
