// SPDX-License-Identifier: BSD-3-Clause
/// XNNPACK 2024-11 multiplies float32 by 32 columns at once where there is AVX-512, also where a
/// layer has 16 or 40 of them. It has kernels for 16 and does not choose them. Their seven sums
/// keep one unit busy that multiplies 64 bytes, of two, with four cycles each, 7/8. A linker puts
/// these functions in the place of XNNPACK's (--wrap): the layer that is being created, of this
/// thread, says how many columns it has.

#include "kernels/narrow.h"

#include <stdbool.h>

#include <cpuinfo.h>
#include <xnnpack.h>
#include <xnnpack/config.h>
#include <xnnpack/gemm.h>
#include <xnnpack/igemm.h>
#include <xnnpack/microparams-init.h>
#include <xnnpack/packw.h>

enum { kWide = 32, kNarrow = 16 };
enum { kOneRow = 0, kSevenRows = 6 };  ///< Places of kernels in a configuration.

static struct xnn_gemm_config narrow;  ///< Of `nr` 0 where it is not used.
static _Thread_local bool is_narrow;
static size_t eighths = 7;  ///< Of the speed of wide kernels.

static size_t up_to_whole(size_t columns, size_t unit) {
  return (columns + unit - 1) / unit * unit;
}

static bool is_faster_narrow(size_t columns) {
  return narrow.nr != 0 && columns < SIZE_MAX / 16 &&
         8 * up_to_whole(columns, kNarrow) < eighths * up_to_whole(columns, kWide);
}

const struct xnn_gemm_config* __real_xnn_init_f32_gemm_config(void);
const struct xnn_gemm_config* __wrap_xnn_init_f32_gemm_config(void);

const struct xnn_gemm_config* __wrap_xnn_init_f32_gemm_config(void) {
  return is_narrow ? &narrow : __real_xnn_init_f32_gemm_config();
}

// clang-format off
#define CONVOLUTION                                                                               \
  uint32_t top, uint32_t right, uint32_t bottom, uint32_t left, uint32_t kernel_height,           \
  uint32_t kernel_width, uint32_t stride_height, uint32_t stride_width, uint32_t dilation_height, \
  uint32_t dilation_width, uint32_t groups, size_t inputs, size_t outputs, size_t input_stride,   \
  size_t output_stride, const float *kernel, const float *bias, float least, float most,          \
  uint32_t flags, xnn_code_cache_t code, xnn_weights_cache_t weights, xnn_operator_t *result
#define LINEAR                                                                                    \
  size_t inputs, size_t outputs, size_t input_stride, size_t output_stride, const float *kernel,  \
  const float *bias, float least, float most, uint32_t flags, xnn_code_cache_t code,              \
  xnn_weights_cache_t weights, xnn_operator_t *result
// clang-format on

enum xnn_status __real_xnn_create_convolution2d_nhwc_f32(CONVOLUTION);
enum xnn_status __wrap_xnn_create_convolution2d_nhwc_f32(CONVOLUTION);
enum xnn_status __real_xnn_create_fully_connected_nc_f32(LINEAR);
enum xnn_status __wrap_xnn_create_fully_connected_nc_f32(LINEAR);

enum xnn_status __wrap_xnn_create_convolution2d_nhwc_f32(CONVOLUTION) {
  is_narrow = is_faster_narrow(outputs);
  const enum xnn_status status = __real_xnn_create_convolution2d_nhwc_f32(
      top, right, bottom, left, kernel_height, kernel_width, stride_height, stride_width,
      dilation_height, dilation_width, groups, inputs, outputs, input_stride, output_stride, kernel,
      bias, least, most, flags, code, weights, result);
  is_narrow = false;
  return status;
}

enum xnn_status __wrap_xnn_create_fully_connected_nc_f32(LINEAR) {
  is_narrow = is_faster_narrow(outputs);
  const enum xnn_status status =
      __real_xnn_create_fully_connected_nc_f32(inputs, outputs, input_stride, output_stride, kernel,
                                               bias, least, most, flags, code, weights, result);
  is_narrow = false;
  return status;
}

void etx_xnnpack_use_narrow(void) {
#if XNN_ENABLE_AVX512F
  const struct xnn_gemm_config* const wide = __real_xnn_init_f32_gemm_config();
  const xnn_gemm_ukernel_fn known =
      (xnn_gemm_ukernel_fn)xnn_f32_gemm_minmax_ukernel_7x32__avx512f_broadcast;
  if (wide == NULL || wide->nr != kWide || wide->mr != 7 ||
      wide->minmax.gemm[kSevenRows].function[XNN_UARCH_DEFAULT] != known) {
    return;
  }
  narrow = *wide;
  narrow.minmax.gemm[kOneRow] = xnn_init_hmp_gemm_ukernel(
      (xnn_gemm_ukernel_fn)xnn_f32_gemm_minmax_ukernel_1x16__avx512f_broadcast);
  narrow.minmax.gemm[kSevenRows] = xnn_init_hmp_gemm_ukernel(
      (xnn_gemm_ukernel_fn)xnn_f32_gemm_minmax_ukernel_7x16__avx512f_broadcast);
  narrow.minmax.igemm[kOneRow] = xnn_init_hmp_igemm_ukernel(
      (xnn_igemm_ukernel_fn)xnn_f32_igemm_minmax_ukernel_1x16__avx512f_broadcast);
  narrow.minmax.igemm[kSevenRows] = xnn_init_hmp_igemm_ukernel(
      (xnn_igemm_ukernel_fn)xnn_f32_igemm_minmax_ukernel_7x16__avx512f_broadcast);
  narrow.pack_gemm_goi =
      (xnn_packw_gemm_goi_ukernel_fn)xnn_x32_packw_gemm_goi_ukernel_x16__avx512f_u4_prfm;
  narrow.nr = kNarrow;
  if (cpuinfo_get_core(0)->uarch == cpuinfo_uarch_zen4) eighths = 8;
#endif
}
