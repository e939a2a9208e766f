// SPDX-License-Identifier: BSD-3-Clause
#include "core/cast.h"
#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/shape.h"
#include "isa/isa.h"

namespace etx::portable {
namespace {

constexpr int64_t kBlock = 256;

void gate(const float* a, const float* b, float* y, int64_t n) {
  isa().sigmoid(b, y, static_cast<size_t>(n));
  isa().mul(a, y, y, static_cast<size_t>(n));
}
void gate(const double* a, const double* b, double* y, int64_t n) {
  isa().sigmoid_double(b, y, static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) y[i] *= a[i];
}

/// y = a * sigmoid(b) over `n` elements, computed in blocks of C.
template <typename C>
void gate_row(ScalarType dtype, const char* a, const char* b, char* y, int64_t n) {
  const ScalarType as = wide(dtype);
  const int64_t size = static_cast<int64_t>(element_size(dtype));
  C blocks[3][kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = min(n - i, kBlock);
    cast(a + i * size, dtype, 1, blocks[0], as, count);
    cast(b + i * size, dtype, 1, blocks[1], as, count);
    gate(blocks[0], blocks[1], blocks[2], count);
    cast(blocks[2], as, 1, y + i * size, dtype, count);
  }
}

/// The first half along `dim` times the sigmoid of the second.
Error glu_out(Context& context, const Tensor& self, int64_t dim, Tensor& out) {
  const ScalarType dtype = self.scalar_type();
  ETX_CHECK(context, self.dim() > 0, InvalidArgument, "self must have at least 1 dimension");
  ETX_CHECK(context, Floating::contains(dtype), NotSupported, "self must have a floating dtype");
  ETX_CHECK(context, out.scalar_type() == dtype, InvalidArgument,
            "out must have the dtype of self");
  ssize_t d = 0;
  ETX_TRY(wrap_dim(context, dim, self.dim(), d));
  ETX_CHECK(context, self.size(d) % 2 == 0, InvalidArgument,
            "the size of dimension dim must be even");
  Shape shape(self);
  shape[static_cast<size_t>(d)] /= 2;
  ETX_TRY(resize_out(context, out, shape));
  ETX_CHECK(context, equal(self.dim_order(), out.dim_order()), NotSupported,
            "self and out must have the same dim order");
  if (out.numel() == 0) return Error::Ok;
  const int64_t row = static_cast<int64_t>(out.size(d) * out.stride(d));
  context.parallel_for(0, out.numel() / row, 1 + 8192 / row, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const char* a = element_ptr(self, 2 * i * row);
      const char* b = element_ptr(self, (2 * i + 1) * row);
      char* y = mutable_element_ptr(out, i * row);
      if (dtype == ScalarType::Double) {
        gate_row<double>(dtype, a, b, y, row);
      } else {
        gate_row<float>(dtype, a, b, y, row);
      }
    }
  });
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::glu.out", glu_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(glu_kernels, kRows);

}  // namespace etx::portable
