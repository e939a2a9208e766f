# SPDX-License-Identifier: BSD-3-Clause
"""Passes that store weights in bfloat16, where that is asked for."""

from __future__ import annotations

from collections.abc import Container

from etx_exir.errors import ConfigError
from etx_exir.ir.out_variants import out_variant
from etx_exir.ir.targets import PRECISIONS
from etx_exir.narrow.operators import NARROW_CONV, NARROW_LINEAR
from etx_exir.passes.base import Pass
from etx_exir.passes.narrow.narrow_conv import NarrowConv
from etx_exir.passes.narrow.narrow_embedding import NarrowEmbedding
from etx_exir.passes.narrow.narrow_linear import NarrowLinear
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from etx_exir.passes.simplify.share_constants import ShareConstants

__all__ = ["NARROW", "narrow"]

NARROW: tuple[Pass, ...] = (
    NarrowLinear(),
    NarrowConv(),
    NarrowEmbedding(),
    ShareConstants(),  # what several read was narrowed for each
    RemoveDeadCode(),  # last: the weights that they replace, and copies
)
"""What a program in bf16 runs, in this order."""


def narrow(kernels: Container[str], precision: str) -> tuple[Pass, ...]:
    """Return the passes for a precision, and a target with these kernels."""
    if precision == PRECISIONS[0]:
        return ()
    for op in (NARROW_LINEAR, NARROW_CONV):
        variant = out_variant(op)
        assert variant is not None
        if variant.key not in kernels:
            raise ConfigError(f"precision={precision!r}: the target has no kernel {variant.key}")
    return NARROW
