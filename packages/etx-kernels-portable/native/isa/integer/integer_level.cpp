// SPDX-License-Identifier: BSD-3-Clause
/// Compiled once per level of integers, with ETX_ISA_LEVEL naming it and the compiler flags that
/// belong to it, and without contraction of floats. Nothing but the table may have external
/// linkage.

#include "isa/integer/integer.h"
#if defined(ETX_INTEGER_AMX)
#include "isa/integer/level/amx.h"
#endif
#include "isa/integer/level/depthwise.h"
#include "isa/integer/level/gather.h"
#include "isa/integer/level/interpolate.h"
#include "isa/integer/level/pointwise.h"
#include "isa/integer/level/product.h"
#include "isa/integer/level/weight_only.h"
#if defined(ETX_ONE_LEVEL)
#include "isa/one_level_entries.h"
#endif

#ifndef ETX_ISA_LEVEL
#define ETX_ISA_LEVEL base
#endif
#define ETX_JOIN_(a, b) a##b
#define ETX_JOIN(a, b) ETX_JOIN_(a, b)
#define ETX_TEXT_(a) #a
#define ETX_TEXT(a) ETX_TEXT_(a)

namespace etx::portable {

#if defined(ETX_ONE_LEVEL)
extern const int32_t integer_tile_rows = kTileRows;
extern const int32_t integer_panel_blocks = kPanelBlocks;
extern const int32_t integer_step_bytes = kStepBytes;
extern const int32_t integer_offset = kOffset;
extern const int32_t integer_narrow_rows = kNarrowRows;

#define ETX_INTEGER(result, member, parameters) \
  ETX_ENTRY(Pointer<result parameters>, IntegerLoop::member, member)
#include "isa/integer/integer.def"
#else
namespace {

constexpr Integer kTable = {
    ETX_TEXT(ETX_ISA_LEVEL), kTileRows, kPanelBlocks, kStepBytes, kOffset, kNarrowRows, 0,

#define ETX_INTEGER(result, member, parameters) member,
#include "isa/integer/integer.def"
};

}  // namespace

extern const Integer ETX_JOIN(integer_, ETX_ISA_LEVEL);
const Integer ETX_JOIN(integer_, ETX_ISA_LEVEL) = kTable;

#if defined(ETX_INTEGER_AMX)
extern const Integer integer_v4_amx;
const Integer integer_v4_amx = with_tiles(kTable);
#endif
#endif

}  // namespace etx::portable
