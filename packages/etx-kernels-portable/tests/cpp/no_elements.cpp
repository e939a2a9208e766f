// SPDX-License-Identifier: BSD-3-Clause
/// Converts no elements, from nowhere to nowhere, between any two dtypes: built with UBSan.
#include "core/cast.h"

int main() {
  using namespace etx;
  for (int from = 0; from < kNumScalarTypes; ++from) {
    for (int to = 0; to < kNumScalarTypes; ++to) {
      const auto source = static_cast<ScalarType>(from), target = static_cast<ScalarType>(to);
      if (!portable::is_castable(source) || !portable::is_castable(target)) continue;
      for (const int64_t stride : {0, 1, 3}) {
        portable::cast(nullptr, source, stride, nullptr, target, 0);
        portable::cast_through(nullptr, source, stride, target, nullptr, source, 0);
      }
    }
  }
  return 0;
}
