// SPDX-License-Identifier: BSD-3-Clause
/// Compiled once per level of integers, with ETX_ISA_LEVEL naming it and the compiler flags that
/// belong to it, and without contraction of floats. Nothing but the table may have external
/// linkage.

#include "isa/integer/integer.h"
#include "isa/integer/level/depthwise.h"
#include "isa/integer/level/gather.h"
#include "isa/integer/level/pointwise.h"
#include "isa/integer/level/product.h"
#include "isa/integer/level/weight_only.h"

#ifndef ETX_ISA_LEVEL
#define ETX_ISA_LEVEL base
#endif
#define ETX_JOIN_(a, b) a##b
#define ETX_JOIN(a, b) ETX_JOIN_(a, b)
#define ETX_TEXT_(a) #a
#define ETX_TEXT(a) ETX_TEXT_(a)

namespace etx::portable {

extern const Integer ETX_JOIN(integer_, ETX_ISA_LEVEL);
const Integer ETX_JOIN(integer_, ETX_ISA_LEVEL) = {
    ETX_TEXT(ETX_ISA_LEVEL), kTileRows, kPanelBlocks, kStepBytes, kOffset,

#define ETX_INTEGER(result, member, parameters) member,
#include "isa/integer/integer.def"
};

}  // namespace etx::portable
