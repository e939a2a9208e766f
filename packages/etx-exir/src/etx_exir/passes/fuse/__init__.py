# SPDX-License-Identifier: BSD-3-Clause
"""Passes that make one of several: of a layer and what surrounds it, of attention, of functions."""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import product
from typing import Any

from torch.fx import Node

from etx_exir.ir.ops import PERMUTATIONS
from etx_exir.ir.out_variants import out_variant
from etx_exir.passes.base import NodePass, Pass
from etx_exir.passes.fuse.drop_indices import WITH_INDICES, DropIndices
from etx_exir.passes.fuse.fuse_activations import CLAMPS, MUL, SHIFTS, SIGMOID, FuseActivations
from etx_exir.passes.fuse.fuse_attention import BMM, SOFTMAX, FuseAttention
from etx_exir.passes.fuse.fuse_transposes import FuseTransposes
from etx_exir.passes.fuse.narrow_attention import NarrowAttention
from etx_exir.passes.simplify.merge_views import MergeViews
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from etx_exir.passes.simplify.remove_noops import RemoveNoops

__all__ = ["WHOLE", "whole"]

PARTS: dict[NodePass, tuple[tuple[Any, ...], ...]] = {
    FuseAttention(): ((BMM, SOFTMAX),),
    NarrowAttention(): ((BMM, SOFTMAX),),
    FuseTransposes(): tuple(product((BMM,), PERMUTATIONS)),  # after attention, which looks for bmm
    FuseActivations(): ((MUL, SIGMOID), *product(SHIFTS, CLAMPS)),
    DropIndices(): ((WITH_INDICES,),),
}
"""What puts operators together, and the sets of which it needs one to do so."""
CLEANING: tuple[Pass, ...] = (MergeViews(), RemoveNoops(), RemoveDeadCode())
WHOLE: tuple[Pass, ...] = (*PARTS, *CLEANING)
"""What a target that has as one operator what torch has as several runs, in this order."""


def whole(kernels: Container[str], nodes: Iterable[Node]) -> tuple[Pass, ...]:
    """Return the passes for a target with these kernels, none where nothing is to be fused."""
    called = {node.target for node in nodes}
    fusing = [
        item
        for item, parts in PARTS.items()
        if any(called.issuperset(each) for each in parts)
        and all(_is_in(kernels, op) for op in item.makes)
    ]
    return (*fusing, *CLEANING) if fusing else ()


def _is_in(kernels: Container[str], op: Any) -> bool:
    variant = out_variant(op)
    return variant is not None and variant.key in kernels
