# SPDX-License-Identifier: BSD-3-Clause
"""Passes that make one of several: of a layer and what surrounds it, and of attention."""

from __future__ import annotations

from collections.abc import Container, Iterable

from torch.fx import Node

from etx_exir.ir.attention import ATTENTION
from etx_exir.ir.out_variants import out_variant
from etx_exir.passes.base import Pass
from etx_exir.passes.fuse.fuse_attention import SOFTMAX, FuseAttention
from etx_exir.passes.fuse.narrow_attention import NarrowAttention
from etx_exir.passes.simplify.merge_views import MergeViews
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from etx_exir.passes.simplify.remove_noops import RemoveNoops

__all__ = ["WHOLE", "whole"]

WHOLE: tuple[Pass, ...] = (
    FuseAttention(),
    NarrowAttention(),
    MergeViews(),
    RemoveNoops(),
    RemoveDeadCode(),
)
"""What a target that has attention as one operator runs, in this order."""


def whole(kernels: Container[str], nodes: Iterable[Node]) -> tuple[Pass, ...]:
    """Return the passes for a target with these kernels, none where nothing is to be fused."""
    variant = out_variant(ATTENTION)
    has_it = variant is not None and variant.key in kernels
    return WHOLE if has_it and any(node.target is SOFTMAX for node in nodes) else ()
