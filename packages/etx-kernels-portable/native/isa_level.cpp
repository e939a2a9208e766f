// SPDX-License-Identifier: BSD-3-Clause
/// Compiled once per instruction-set level, with ETX_ISA_LEVEL naming it (base, v3, v4) and the
/// compiler flags that belong to it. Nothing but the table may have external linkage.

#include "isa.h"
#include "level/dots.h"
#include "level/gemm.h"
#include "level/loops.h"
#include "level/pad_lines.h"
#include "level/rows.h"
#include "level/taps.h"
#include "level/transpose.h"

#ifndef ETX_ISA_LEVEL
#define ETX_ISA_LEVEL base
#endif
#define ETX_JOIN_(a, b) a##b
#define ETX_JOIN(a, b) ETX_JOIN_(a, b)
#define ETX_TEXT_(a) #a
#define ETX_TEXT(a) ETX_TEXT_(a)

namespace etx::portable {

extern const Isa ETX_JOIN(isa_, ETX_ISA_LEVEL);
const Isa ETX_JOIN(isa_, ETX_ISA_LEVEL) = {
    ETX_TEXT(ETX_ISA_LEVEL),
    kLanes,
    kTileRows,
    kTileColumns,

    unary<exp>,
    unary<log>,
    unary<tanh>,
    unary<erf>,
    unary<sigmoid>,
    unary<silu>,
    unary<gelu>,
    unary<gelu_tanh>,
    unary<vec_abs>,
    unary<vec_neg>,
    unary<vec_relu>,
    unary<square_root>,
    unary<vec_rsqrt>,
    unary<vec_reciprocal>,
    unary<vec_square>,
    binary<vec_add>,
    binary<vec_sub>,
    binary<vec_mul>,
    binary<vec_div>,
    binary<vec_maximum>,
    binary<vec_minimum>,
    with_scalar<vec_add>,
    with_scalar<vec_rsub>,
    with_scalar<vec_mul>,
    with_scalar<vec_div>,
    with_scalar<vec_rdiv>,
    add_scaled,
    clamp,
    sum,
    sum_squares,
    max,
    min,
    softmax_row,
    log_softmax_row,
    scale_row,
    affine,
    gemm,
    dots,
    pack_transposed,
    pack_rows,
    taps,
    max_taps,
    pad_lines,
};

}  // namespace etx::portable
