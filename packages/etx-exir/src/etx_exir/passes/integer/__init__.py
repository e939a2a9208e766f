# SPDX-License-Identifier: BSD-3-Clause
"""Passes that make integer operators of what lies between dequantize and quantize."""

from __future__ import annotations

from collections.abc import Container, Iterable

from torch.fx import Node

from etx_exir.integer.scales import PREFIX, called
from etx_exir.ir.integer_ops import OPERATORS
from etx_exir.ir.out_variants import out_variant
from etx_exir.passes.base import Pass
from etx_exir.passes.integer.align_rows import AlignRows
from etx_exir.passes.integer.fuse_dynamic import FuseDynamic
from etx_exir.passes.integer.fuse_quantized import FuseQuantized
from etx_exir.passes.integer.fuse_recurrent import FuseRecurrent
from etx_exir.passes.integer.fuse_weights import FuseWeights
from etx_exir.passes.integer.join_linears import JoinLinears
from etx_exir.passes.integer.merge_groups import MergeGroups
from etx_exir.passes.integer.quantize_first import QuantizeFirst
from etx_exir.passes.simplify.common_subexpressions import CommonSubexpressions
from etx_exir.passes.simplify.merge_views import MergeViews
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from etx_exir.passes.simplify.remove_noops import RemoveNoops
from etx_exir.passes.simplify.share_constants import ShareConstants

__all__ = ["INTEGER", "JoinLinears", "MergeGroups", "integer"]

INTEGER: tuple[Pass, ...] = (
    QuantizeFirst(),
    RemoveDeadCode(),  # FuseQuantized takes results that nothing else reads
    FuseQuantized(),
    FuseDynamic(),
    FuseWeights(),  # after those that take the weights for integer products
    FuseRecurrent(),
    MergeGroups(),
    AlignRows(),  # after those that make operators of rows
    MergeViews(),
    RemoveNoops(),
    RemoveDeadCode(),
    CommonSubexpressions(),
    ShareConstants(),  # each layer packed its weight for itself
    JoinLinears(),  # after the conversions of a shared input are one
    RemoveDeadCode(),
)
"""What a target that has the integer operators runs, in this order."""


def integer(kernels: Container[str], nodes: Iterable[Node]) -> tuple[Pass, ...]:
    """Return the passes for a target with these kernels, none where nothing is quantized."""
    has_all = all((v := out_variant(op)) is not None and v.key in kernels for op in OPERATORS)
    return INTEGER if has_all and any(called(n).startswith(PREFIX) for n in nodes) else ()
