# SPDX-License-Identifier: BSD-3-Clause
"""What can be lowered: a row an operator. The partitioner and `preprocess` read this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._prims_common import is_contiguous_or_false
from torch.fx import Node

from pointwise_aot.code import Assembler, Op

aten: Any = torch.ops.aten
Lower = Callable[[Assembler, list[Any]], int]


@dataclass(frozen=True)
class Row:
    """How to lower an operator: the names of its operands, their defaults, and the code."""

    lower: Lower
    operands: tuple[str, ...]
    defaults: Mapping[str, float | None]


def simple(op: Op) -> Lower:
    return lambda code, operands: code.emit(op, *operands)


def clamp(code: Assembler, operands: list[Any]) -> int:
    x, low, high = operands
    above: int = x if low is None else code.emit(Op.MAXIMUM, x, low)
    return above if high is None else code.emit(Op.MINIMUM, above, high)


def leaky_relu(code: Assembler, operands: list[Any]) -> int:
    x, slope = operands
    zero = code.constant(0.0)
    below = code.emit(Op.MUL, code.emit(Op.MINIMUM, x, zero), slope)
    return code.emit(Op.ADD, code.emit(Op.MAXIMUM, x, zero), below)


def hardsigmoid(code: Assembler, operands: list[Any]) -> int:
    (x,) = operands
    shifted = code.emit(Op.ADD, x, code.constant(3.0))
    clamped = clamp(code, [shifted, code.constant(0.0), code.constant(6.0)])
    return code.emit(Op.MUL, clamped, code.constant(1 / 6))


def hardswish(code: Assembler, operands: list[Any]) -> int:
    return code.emit(Op.MUL, operands[0], hardsigmoid(code, operands))


def silu(code: Assembler, operands: list[Any]) -> int:
    return code.emit(Op.MUL, operands[0], code.emit(Op.SIGMOID, operands[0]))


def row(lower: Lower, *operands: str, **defaults: float | None) -> Row:
    return Row(lower, operands, defaults)


def unary(op: Op) -> Row:
    return row(simple(op), "self")


def binary(op: Op) -> Row:
    return row(simple(op), "self", "other")


WHOLE = (aten.hardswish.default, aten.hardsigmoid.default, aten.silu.default)

TABLE: dict[Any, Row] = {
    aten.neg.default: unary(Op.NEG),
    aten.abs.default: unary(Op.ABS),
    aten.relu.default: unary(Op.RELU),
    aten.sqrt.default: unary(Op.SQRT),
    aten.reciprocal.default: unary(Op.RECIPROCAL),
    aten.exp.default: unary(Op.EXP),
    aten.tanh.default: unary(Op.TANH),
    aten.sigmoid.default: unary(Op.SIGMOID),
    aten.add.Tensor: binary(Op.ADD),
    aten.add.Scalar: binary(Op.ADD),
    aten.sub.Tensor: binary(Op.SUB),
    aten.sub.Scalar: binary(Op.SUB),
    aten.mul.Tensor: binary(Op.MUL),
    aten.mul.Scalar: binary(Op.MUL),
    aten.div.Tensor: binary(Op.DIV),
    aten.div.Scalar: binary(Op.DIV),
    aten.minimum.default: binary(Op.MINIMUM),
    aten.maximum.default: binary(Op.MAXIMUM),
    aten.clamp.default: row(clamp, "self", "min", "max", min=None, max=None),
    aten.hardtanh.default: row(clamp, "self", "min_val", "max_val", min_val=-1.0, max_val=1.0),
    aten.leaky_relu.default: row(leaky_relu, "self", "negative_slope", negative_slope=0.01),
    aten.hardsigmoid.default: row(hardsigmoid, "self"),
    aten.hardswish.default: row(hardswish, "self"),
    aten.silu.default: row(silu, "self"),
}


def operands(node: Node) -> list[Any]:
    """Return the operands of `node` as its row names them: nodes or numbers."""
    entry = TABLE[node.target]
    names = [argument.name for argument in node.target._schema.arguments]  # type: ignore[union-attr]
    given = {**entry.defaults, **dict(zip(names, node.args, strict=False)), **node.kwargs}
    return [given[name] for name in entry.operands]


def shape(node: Node) -> tuple[Any, ...]:
    """Return the sizes of a node's tensor: integers, or expressions where they vary."""
    sizes = node.meta["val"].shape
    return tuple(size if isinstance(size, int) else size.node.expr for size in sizes)


def is_single(node: Node) -> bool:
    """Tell whether a node's tensor holds one number, whatever its rank."""
    return all(size == 1 for size in shape(node))


def why_not(node: Node) -> str | None:
    """Return why a node cannot be lowered, or None when it can."""
    if node.target not in TABLE:
        return f"{node.target} is not in the table"
    alpha = node.kwargs.get("alpha", 1)
    if alpha != 1:
        return f"alpha is {alpha}; only 1 is lowered"
    tensors = [item for item in operands(node) if isinstance(item, Node)]
    for item in (node, *tensors):
        value = item.meta["val"]
        if not isinstance(value, torch.Tensor):
            return f"{item.name} is computed at run time and no tensor"
        if value.dtype != torch.float32:
            return f"{item.name} is {value.dtype}; only torch.float32 is lowered"
        if not is_contiguous_or_false(value):
            return f"{item.name} is not contiguous"
    for item in tensors:
        if shape(item) != shape(node) and not is_single(item):
            return f"{item.name} of shape {list(shape(item))} is broadcast"
    return None
