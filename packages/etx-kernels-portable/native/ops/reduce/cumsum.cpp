// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>

#include "core/dispatch.h"
#include "core/loops.h"
#include "core/min_max.h"
#include "core/shape.h"
#include "core/work.h"
#include "ops/reduce/reduction.h"

namespace etx::portable {
namespace {

/// Whether tensors are summed in this type: floating ones in float64.
constexpr bool is_summed(ScalarType type) {
  if (type != ScalarType::Double) return is_computed(type);
  return any_built(type, ScalarType::Float, ScalarType::Half, ScalarType::BFloat16);
}

/// As float32, in which eager multiplies float16 and bfloat16, where `is_rounded`.
template <typename C>
C product(C a, C b, bool is_rounded) {
  const C found = wrap_mul(a, b);
  return is_rounded ? static_cast<C>(static_cast<float>(found)) : found;
}

/// y[i] = x[0] + … + x[i] along one dimension, or their product; float32 is joined in double. A
/// dtype that is asked for is that of the elements.
Error scan(Context& context, const Tensor& self, int64_t dim, std::optional<ScalarType> asked,
           bool multiply, Tensor& out) {
  ETX_CHECK(context,
            RealBool::contains(self.scalar_type()) && RealBool::contains(out.scalar_type()),
            NotSupported, "the operator takes bool, integers and floating dtypes");
  ssize_t d = 0;
  ETX_TRY(wrap_dim(context, dim, self.dim(), d));
  ETX_TRY(resize_out(context, out, Shape(self)));
  if (out.numel() == 0) return Error::Ok;
  Nest<2> lines;
  int64_t beside = 1, in_beside = 0, out_beside = 0;
  for (ssize_t i = self.dim(); i-- > 0;) {
    const ssize_t other = out.dim_order()[static_cast<size_t>(i)];
    if (other == d) continue;
    if (!kIsSmall && i == self.dim() - 1 && self.size(other) > 1) {
      beside = self.size(other);
      in_beside = self.stride(other);
      out_beside = out.stride(other);
    } else {
      lines.push(self.size(other), {self.stride(other), out.stride(other)});
    }
  }
  const int64_t blocks = divide_up(beside, Reader::kBlock);
  const bool scalar = self.dim() == 0;
  const int64_t length = scalar ? 1 : self.size(d);
  const int64_t in_stride = scalar ? 1 : self.stride(d);
  const int64_t out_stride = scalar ? 1 : out.stride(d);
  const ScalarType as =
      is_floating(out.scalar_type()) ? ScalarType::Double : wide(out.scalar_type());
  return dispatch<is_summed>(context, Join<Float64, Int64>{}, as, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const bool is_rounded =
        out.scalar_type() == ScalarType::Half || out.scalar_type() == ScalarType::BFloat16;
    const bool converts = asked.has_value() && self.scalar_type() != out.scalar_type();
    const Reader reader(self, converts ? out.scalar_type() : as, as);
    const Writer writer(out, as);
    const int64_t grain = 1 + 16384 / (length * min(beside, Reader::kBlock));
    // What may overflow is joined one by one.
    const bool by_fours = !multiply && out.scalar_type() != ScalarType::Double;
    const auto sums_of = [&](int64_t begin, int64_t end) {
      lines.for_each(begin, end, [&](const int64_t* offsets) {
        C total = multiply ? 1 : 0;
        for (int64_t i = 0; i < length; i += Reader::kBlock) {
          const int64_t count = min(length - i, Reader::kBlock);
          C sums[Reader::kBlock];
          reader.for_each_piece(
              offsets[0] + i * in_stride, in_stride, count, [&](const void* piece, int64_t n) {
                const C* x = static_cast<const C*>(piece);
                C sum = total;
                int64_t k = 0;
                for (; by_fours && k + 4 <= n; k += 4) {
                  const C two = wrap_add(x[k], x[k + 1]);
                  const C three = wrap_add(two, x[k + 2]);
                  sums[k] = wrap_add(sum, x[k]);
                  sums[k + 1] = wrap_add(sum, two);
                  sums[k + 2] = wrap_add(sum, three);
                  sums[k + 3] = sum = wrap_add(sum, wrap_add(three, x[k + 3]));
                }
                for (; k < n; ++k) {
                  sums[k] = sum = multiply ? product(sum, x[k], is_rounded) : wrap_add(sum, x[k]);
                }
                total = sum;
              });
          writer.write(offsets[1] + i * out_stride, out_stride, sums, count);
        }
      });
    };
    // Lines that lie side by side are worked on together.
    const auto sums_of_blocks = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * Reader::kBlock;
        const int64_t count = min(beside - first, Reader::kBlock);
        lines.for_each(i / blocks, i / blocks + 1, [&](const int64_t* offsets) {
          C totals[Reader::kBlock];
          std::fill_n(totals, count, C(multiply ? 1 : 0));
          for (int64_t k = 0; k < length; ++k) {
            C* total = totals;
            reader.for_each_piece(offsets[0] + k * in_stride + first * in_beside, in_beside, count,
                                  [&](const void* piece, int64_t n) {
                                    const C* x = static_cast<const C*>(piece);
                                    if (multiply) {
                                      for (int64_t j = 0; j < n; ++j) {
                                        total[j] = product(total[j], x[j], is_rounded);
                                      }
                                    } else {
                                      for (int64_t j = 0; j < n; ++j) {
                                        total[j] = wrap_add(total[j], x[j]);
                                      }
                                    }
                                    total += n;
                                  });
            writer.write(offsets[1] + k * out_stride + first * out_beside, out_beside, totals,
                         count);
          }
        });
      }
    };
    const int64_t units = out.numel() / length / beside * blocks;
    context.parallel_for(0, units, grain,
                         !kIsSmall && beside > 1 ? Callback<int64_t, int64_t>(sums_of_blocks)
                                                 : Callback<int64_t, int64_t>(sums_of));
    return Error::Ok;
  });
}

Error cumsum_out(Context& context, const Tensor& self, int64_t dim, std::optional<ScalarType> dtype,
                 Tensor& out) {
  return scan(context, self, dim, dtype, false, out);
}

Error cumprod_out(Context& context, const Tensor& self, int64_t dim,
                  std::optional<ScalarType> dtype, Tensor& out) {
  return scan(context, self, dim, dtype, true, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::cumprod.out", cumprod_out, RealBool::bits),
    ETX_KERNEL("aten::cumsum.out", cumsum_out, RealBool::bits),
};

}  // namespace

ETX_KERNEL_TABLE(cumsum_kernels, kRows);

}  // namespace etx::portable
