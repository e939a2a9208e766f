// SPDX-License-Identifier: BSD-3-Clause
#include "isa/widen.h"

#include "isa/isa.h"

namespace etx::portable {

void from_bfloat16(const uint16_t* from, float* to, int64_t n) {
  isa().from_bfloat16(from, to, static_cast<size_t>(n));
}

}  // namespace etx::portable
