// SPDX-License-Identifier: BSD-3-Clause
/// Compiled once per instruction-set level, with ETX_ISA_LEVEL naming it (base, v3, v4) and the
/// compiler flags that belong to it. Nothing but the table may have external linkage.

#include "isa/isa.h"
#include "isa/level/circular.h"
#include "isa/level/depthwise.h"
#include "isa/level/doubles.h"
#include "isa/level/extremes.h"
#include "isa/level/floats_in_double.h"
#include "isa/level/gemm.h"
#include "isa/level/gemv.h"
#include "isa/level/halves.h"
#include "isa/level/loops.h"
#include "isa/level/pad_lines.h"
#include "isa/level/panels.h"
#include "isa/level/product.h"
#include "isa/level/quantized.h"
#include "isa/level/rows.h"
#include "isa/level/whole.h"
#include "isa/level/window.h"
#include "isa/level/winograd.h"
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
extern const int32_t isa_vector_floats = kLanes;
extern const int32_t isa_tile_rows = kTileRows;
extern const int32_t isa_tile_columns = kTileColumns;

#define ETX_UNARY(member, function, expected) ETX_ENTRY(UnaryLoop, IsaLoop::member, unary<function>)
#define ETX_BINARY(member, function, expected) \
  ETX_ENTRY(BinaryLoop, IsaLoop::member, binary<function>)
#define ETX_SCALAR(member, function, expected) \
  ETX_ENTRY(ScalarLoop, IsaLoop::member, with_scalar<function>)
#define ETX_LOOP(result, member, parameters) \
  ETX_ENTRY(Pointer<result parameters>, IsaLoop::member, member)
#include "isa/isa.def"
#else
extern const Isa ETX_JOIN(isa_, ETX_ISA_LEVEL);
const Isa ETX_JOIN(isa_, ETX_ISA_LEVEL) = {
    ETX_TEXT(ETX_ISA_LEVEL),
    kLanes,
    kTileRows,
    kTileColumns,

#define ETX_UNARY(member, function, expected) unary<function>,
#define ETX_BINARY(member, function, expected) binary<function>,
#define ETX_SCALAR(member, function, expected) with_scalar<function>,
#define ETX_LOOP(result, member, parameters) member,
#include "isa/isa.def"
};
#endif

}  // namespace etx::portable
