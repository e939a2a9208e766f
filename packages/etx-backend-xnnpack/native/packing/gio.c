// SPDX-License-Identifier: BSD-3-Clause
/// Where a kernel takes `sr` shuffled groups of the depth at once, it masks what lies behind the
/// last one by zeros of the packed right side. XNNPACK 2024-11 packs a right side that is computed
/// at run time into its workspace and leaves that part as it was. A linker puts this function in
/// the place of XNNPACK's (--wrap): it writes the zeros first.

#include <stddef.h>
#include <string.h>

// clang-format off
#define PARAMETERS                                                                             \
  size_t groups, size_t columns, size_t depth, size_t nr, size_t kr, size_t sr, size_t stride, \
  const float *right, const float *bias, const void *scale, float *packed, size_t extra_bytes, \
  const void *params
// clang-format on

void __real_xnn_pack_f32_gemm_gio_w(PARAMETERS);
void __wrap_xnn_pack_f32_gemm_gio_w(PARAMETERS);

void __wrap_xnn_pack_f32_gemm_gio_w(PARAMETERS) {
  const size_t step = kr * sr;
  const size_t steps = (depth + step - 1) / step;
  if (depth % step != 0) {
    const size_t blocks = groups * ((columns + nr - 1) / nr);
    char* block = (char*)packed;
    for (size_t i = 0; i < blocks; ++i) {
      float* last = (float*)block + nr + (steps - 1) * step * nr;
      memset(last, 0, step * nr * sizeof(float));
      block = (char*)(last + step * nr) + extra_bytes;
    }
  }
  __real_xnn_pack_f32_gemm_gio_w(groups, columns, depth, nr, kr, sr, stride, right, bias, scale,
                                 packed, extra_bytes, params);
}
