# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that read an element before they write it: the result may lie on an argument."""

from __future__ import annotations

UNARY = """
abs acos acosh asin asinh atan atanh bitwise_not ceil clamp cos cosh elu erf exp expm1 floor gelu
hardtanh leaky_relu log log10 log1p log2 logical_not logit neg reciprocal relu round rsqrt sigmoid
sign sin sinh sqrt tan tanh trunc
"""
BINARY = """
add.out add.Scalar_out sub.out sub.Scalar_out mul.out mul.Scalar_out div.out div.Scalar_out
maximum.out minimum.out pow.Tensor_Scalar_out masked_fill.Scalar_out where.self_out
"""
SCATTER = "aten::index_put.out"

ELEMENTWISE = frozenset(
    [f"aten::{name}.out" for name in UNARY.split()]
    + [f"aten::{name}" for name in BINARY.split()]
    + [SCATTER]
)
