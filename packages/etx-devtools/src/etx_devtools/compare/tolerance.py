# SPDX-License-Identifier: BSD-3-Clause
"""How far a right result may be from eager's: by dtype, operator and reduction length."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.utils import _pytree as pytree

__all__ = ["reads_weight", "reduction_length", "tolerance"]

EPSILON = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7, torch.float64: 2.0**-40}
SINGLE = 2.0**-23
ROUNDINGS = 8.0
BY_LENGTH = 4.0
OWN_NOISE = 16.0
PRODUCTS = ("mm", "bmm", "bmm_nt", "matmul", "linear", "addmm", "baddbmm", "einsum", "dot", "mv")


def reduction_length(nodes: Iterable[Node]) -> int:
    """Return how many elements the longest sum among `nodes` has."""
    return max((_length(node) for node in nodes), default=1)


def reads_weight(nodes: Iterable[Node]) -> bool:
    """Tell whether one of `nodes` is a layer: a product, a convolution, an embedding."""
    names = {_name(node) for node in nodes}
    return any("conv" in name or "embedding" in name or name in PRODUCTS for name in names)


def tolerance(reference: Tensor, dtype: torch.dtype, length: int, wide: Any = None) -> float:
    """Return the largest absolute error that rounding explains.

    `reference` is eager's result, `wide` the same computed in float64, where that is possible:
    eager's own distance from it says how much the operator cancels on these numbers.
    """
    if not (dtype.is_floating_point or dtype.is_complex):
        return _noise(reference, wide)
    largest = _largest(reference) if reference.numel() else 0.0
    unit = EPSILON.get(dtype, SINGLE)
    rounding = unit * largest * (ROUNDINGS + BY_LENGTH * math.sqrt(length))
    return rounding + OWN_NOISE * _noise(reference, wide)


def _noise(reference: Tensor, wide: Any) -> float:
    if not isinstance(wide, Tensor) or wide.shape != reference.shape or not wide.numel():
        return 0.0
    kind = torch.complex128 if wide.is_complex() else torch.float64
    return float(_magnitudes(reference.to(kind) - wide.to(kind)).max())


def _largest(reference: Tensor) -> float:
    """Return the largest finite magnitude; in one pass without a copy where all are finite."""
    plain = reference.detach()
    if not plain.dtype.is_complex:
        if plain.dtype in (torch.float32, torch.float64):
            array = plain.numpy()  # on one thread: to wake others takes longer
            ends: tuple[float, ...] = (float(array.min()), float(array.max()))
        else:
            ends = tuple(map(float, plain.aminmax()))
        if math.isfinite(sum(ends)):
            return max(map(abs, ends))
    return float(_magnitudes(plain).max())


def _magnitudes(tensor: Tensor) -> Tensor:
    """Return absolute values, zero for what is not finite."""
    plain = tensor.detach().abs()
    single = plain.float() if plain.dtype in (torch.float16, torch.bfloat16) else plain
    return single.nan_to_num(0.0, 0.0, 0.0)


def _name(node: Node) -> str:
    return getattr(node.target, "__name__", str(node.target)).partition(".")[0]


def _length(node: Node) -> int:
    name = _name(node)
    inputs = [_size(arg) for arg in node.all_input_nodes]
    shapes = [shape for shape in inputs if shape is not None]
    out = _size(node)
    if not shapes:
        return 1
    if "conv" in name and len(shapes) > 1:
        return max(1, math.prod(shapes[1]) // max(1, min(shapes[1][:2])))
    if any(part in name for part in PRODUCTS):
        return max(1, shapes[0][-1] if shapes[0] else 1)
    if "softmax" in name or "norm" in name or "cum" in name or "attention" in name:
        return max(1, max(max(shape, default=1) for shape in shapes))
    if out is None:
        return 1
    return max(1, math.prod(shapes[0]) // max(1, math.prod(out)))


def _size(node: Node) -> tuple[int, ...] | None:
    leaves = [x for x in pytree.tree_leaves(node.meta.get("val")) if isinstance(x, Tensor)]
    if not leaves or any(not isinstance(size, int) for size in leaves[0].shape):
        return None
    return tuple(leaves[0].shape)
