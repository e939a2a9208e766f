// SPDX-License-Identifier: BSD-3-Clause
// A right side that is packed at run time has zeros behind its depth, whatever the memory held: for
// each form of tile that a kernel may have, also those that this machine does not choose.
#include <cstddef>
#include <cstdio>
#include <vector>

extern "C" void xnn_pack_f32_gemm_gio_w(size_t g, size_t nc, size_t kc, size_t nr, size_t kr,
                                        size_t sr, size_t k_stride, const float* k, const float* b,
                                        const void* scale, float* packed, size_t extra,
                                        const void* params);

namespace {

/// Numbers of the right side are 1, those of the memory before 7: what is packed is 0 or 1.
bool is_padded(size_t groups, size_t columns, size_t depth, size_t nr, size_t kr, size_t sr) {
  const size_t blocks = (columns + nr - 1) / nr;
  const size_t step = kr * sr;
  const size_t packed_depth = (depth + step - 1) / step * step;
  const std::vector<float> right(groups * columns * depth, 1.0f);
  std::vector<float> packed(groups * blocks * nr * (1 + packed_depth), 7.0f);
  xnn_pack_f32_gemm_gio_w(groups, columns, depth, nr, kr, sr, columns, right.data(), nullptr,
                          nullptr, packed.data(), 0, nullptr);
  const float* block = packed.data();
  for (size_t i = 0; i < groups * blocks; ++i, block += nr * (1 + packed_depth)) {
    const size_t used = i % blocks + 1 < blocks ? nr : columns - (blocks - 1) * nr;
    for (size_t step_begin = 0; step_begin < packed_depth; step_begin += kr) {
      size_t ones = 0, others = 0;
      for (size_t j = 0; j < used * kr; ++j) {
        const float value = block[nr + step_begin * nr + j];
        ones += value == 1.0f ? 1 : 0;
        others += value != 1.0f && value != 0.0f ? 1 : 0;
      }
      if (others != 0 || (step_begin + step <= depth && ones != used * kr)) return false;
    }
  }
  return true;
}

}  // namespace

int main() {
  int cases = 0, failures = 0;
  const size_t forms[][3] = {{16, 1, 4}, {8, 1, 4}, {16, 1, 1}, {8, 2, 1}, {4, 2, 2}, {8, 1, 2}};
  for (const auto& form : forms) {
    for (size_t depth = 1; depth <= 9; ++depth) {
      for (size_t columns : {size_t{1}, form[0], 2 * form[0] + 3}) {
        const bool ok = is_padded(2, columns, depth, form[0], form[1], form[2]);
        ++cases;
        failures += ok ? 0 : 1;
        if (!ok) {
          std::printf("nr %zu kr %zu sr %zu depth %zu columns %zu\n", form[0], form[1], form[2],
                      depth, columns);
        }
      }
    }
  }
  std::printf("%d cases, %d failures\n", cases, failures);
  return failures == 0 ? 0 : 1;
}
