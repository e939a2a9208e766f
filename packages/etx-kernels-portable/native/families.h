// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_FAMILIES_H_
#define ETX_PORTABLE_FAMILIES_H_

#include <etx/abi.h>

/// Every family of this library: one line each. `X(name)` stands for a table that `name.cpp`
/// defines with `ETX_KERNEL_TABLE(name##_kernels, kRows);` in namespace etx::portable. A build
/// may define a shorter list (ETX_KERNELS_FAMILIES in CMake).
// clang-format off
#if !defined(ETX_FAMILIES)
#define ETX_FAMILIES(X) \
  X(grid_sampler) \
  X(cdist) \
  X(fft) \
  X(reduce) \
  X(arg_min_max) \
  X(var) \
  X(cumsum) \
  X(dropout) \
  X(glu) \
  X(fill) \
  X(arange) \
  X(tril) \
  X(copy) \
  X(activation) \
  X(softmax) \
  X(norm) \
  X(max_pool) \
  X(batch_norm) \
  X(gelu) \
  X(avg_pool) \
  X(where) \
  X(compare) \
  X(pow) \
  X(div) \
  X(binary) \
  X(unary) \
  X(conj) \
  X(conv) \
  X(narrow_conv) \
  X(conv_backward) \
  X(matmul) \
  X(narrow_linear) \
  X(attention) \
  X(recurrent) \
  X(prim) \
  X(view) \
  X(permute) \
  X(pixel_shuffle) \
  X(slice) \
  X(repeat) \
  X(expand) \
  X(flip) \
  X(roll) \
  X(as_strided) \
  X(diagonal) \
  X(unfold) \
  X(cat) \
  X(split) \
  X(pad) \
  X(index) \
  X(embedding) \
  X(gather) \
  X(scatter) \
  X(masked) \
  X(nonzero) \
  X(topk) \
  X(sort) \
  X(quantize) \
  X(qparams) \
  X(quantized_embedding) \
  X(quantized_add) \
  X(mixed_linear) \
  X(quantized_linear) \
  X(quantized_conv) \
  X(quantized_depthwise_conv) \
  X(quantized_arithmetic) \
  X(quantized_pool) \
  X(quantized_mean) \
  X(quantized_interpolate) \
  X(lookup) \
  X(dynamic_linear) \
  X(dynamic_conv) \
  X(weight_only_linear) \
  X(weight_only_recurrent) \
  X(upsample) \
  X(upsample_aa) \
  X(nms) \
  X(roi_align) \
  X(random)
#endif
// clang-format on

namespace etx::portable {
#define ETX_FAMILY(name) extern const etx_kernel_table name##_kernels;
ETX_FAMILIES(ETX_FAMILY)
#undef ETX_FAMILY
}  // namespace etx::portable

#endif  // ETX_PORTABLE_FAMILIES_H_
