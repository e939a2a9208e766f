// SPDX-License-Identifier: BSD-3-Clause
// Prints which microkernels XNNPACK has chosen for this machine. Their names are not in the table
// of dynamic symbols: they are said as their distance from print_kernels, for `nm`.
#include "kernels.h"

#include <cstdint>
#include <cstdio>
#include <initializer_list>

#include <xnnpack/config.h>

namespace {

void print(const char* what, unsigned rows, unsigned columns, const void* kernel) {
  const auto here = reinterpret_cast<intptr_t>(&print_kernels);
  const auto there = reinterpret_cast<intptr_t>(kernel);
  std::printf("kernel %s %ux%u at %lld\n", what, rows, columns,
              static_cast<long long>(there - here));
}

void print_gemm(const char* what, const xnn_gemm_config* config) {
  if (config == nullptr) return;
  for (const unsigned rows : {1u, static_cast<unsigned>(config->mr)}) {
    const auto* kernel = reinterpret_cast<const void*>(config->minmax.gemm[rows - 1].function[0]);
    print(what, rows, config->nr, kernel);
  }
}

void print_depthwise(const char* what, const xnn_dwconv_config* config, size_t count) {
  for (size_t i = 0; config != nullptr && i < count; ++i) {
    const auto* kernel = reinterpret_cast<const void*>(config[i].minmax.unipass);
    if (kernel != nullptr) print(what, config[i].primary_tile, config[i].channel_tile, kernel);
  }
}

}  // namespace

void print_kernels() {
  print_gemm("f32", xnn_init_f32_gemm_config());
  print_gemm("f16", xnn_init_f16_gemm_config());
  print_gemm("qs8-qc8w", xnn_init_qs8_qc8w_gemm_config());
  print_gemm("qd8-f32-qc8w", xnn_init_qd8_f32_qc8w_gemm_config());
  print_gemm("qd8-f32-qc4w", xnn_init_qd8_f32_qc4w_gemm_config());
  print_gemm("qd8-f32-qb4w", xnn_init_qd8_f32_qb4w_gemm_config());
  print_depthwise("f32 dwconv", xnn_init_f32_dwconv_config(), XNN_MAX_F32_DWCONV_UKERNELS);
  print_depthwise("qs8 dwconv", xnn_init_qs8_qc8w_dwconv_config(), XNN_MAX_QC8_DWCONV_UKERNELS);
}
