# SPDX-License-Identifier: BSD-3-Clause
"""Range analysis: what is certain of a value, enough to prove that no element is infinite."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node

from etx_exir.ir.constants import Constants
from etx_exir.ir.dim_order import CLONE, TO_COPY
from etx_exir.ir.ops import TABLE, Moves

aten = torch.ops.aten

Range = tuple[float, float]

SAME = frozenset(
    {
        CLONE,
        TO_COPY,
        aten._to_copy.default,
        aten.clone.default,
        *(row.copy for row in TABLE if row.moves is not Moves.OTHER),
    }
)
UNKNOWN: Range = (-math.inf, math.inf)


def is_finite(node: Any, constants: Constants) -> bool:
    """Whether every element of `node` is certainly a finite number of its dtype."""
    low, high = range_of(node, constants)
    return -math.inf < low and high < math.inf


def range_of(node: Any, constants: Constants) -> Range:
    """Return bounds of the elements of `node`; infinite ones where nothing is known."""
    if isinstance(node, int | float):
        return float(node), float(node)
    if not isinstance(node, Node) or not isinstance(node.meta.get("val"), torch.Tensor):
        return UNKNOWN
    dtype = node.meta["val"].dtype
    known = _range(node, constants)
    if not dtype.is_floating_point and not dtype.is_complex:
        return known if known != UNKNOWN else _all(dtype)
    limit = torch.finfo(dtype).max if dtype.is_floating_point else 0.0
    return known if -limit <= known[0] and known[1] <= limit else UNKNOWN


def _all(dtype: torch.dtype) -> Range:
    if dtype is torch.bool:
        return 0.0, 1.0
    info = torch.iinfo(dtype)
    return float(info.min), float(info.max)


def _range(node: Node, constants: Constants) -> Range:
    constant = constants.get(node)
    if constant is not None:
        return (float(constant.min()), float(constant.max())) if constant.numel() else (0.0, 0.0)
    if node.target in SAME:
        return range_of(node.args[0], constants)
    if node.target == aten.where.self:
        return _union(*(range_of(arg, constants) for arg in node.args[1:3]))
    if node.target in (aten.full.default, aten.scalar_tensor.default):
        return range_of(node.args[-1 if node.target == aten.full.default else 0], constants)
    if node.target in LINEAR and node.kwargs.get("alpha", 1) == 1 and len(node.args) == 2:
        a, b = (range_of(arg, constants) for arg in node.args[:2])
        return LINEAR[node.target](a, b)
    if node.target == aten.rsub.Scalar and len(node.args) == 2:
        return _subtract(range_of(node.args[1], constants), range_of(node.args[0], constants))
    return UNKNOWN


def _union(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), max(a[1], b[1])


def _add(a: Range, b: Range) -> Range:
    return _certain(a[0] + b[0], a[1] + b[1])


def _subtract(a: Range, b: Range) -> Range:
    return _certain(a[0] - b[1], a[1] - b[0])


def _multiply(a: Range, b: Range) -> Range:
    products = [x * y for x in a for y in b]
    return _certain(*products)


def _certain(*bounds: float) -> Range:
    return UNKNOWN if any(map(math.isnan, bounds)) else (min(bounds), max(bounds))


LINEAR = {
    aten.add.Scalar: _add,
    aten.add.Tensor: _add,
    aten.mul.Scalar: _multiply,
    aten.mul.Tensor: _multiply,
    aten.sub.Scalar: _subtract,
    aten.sub.Tensor: _subtract,
}
