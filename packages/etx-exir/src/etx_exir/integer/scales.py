# SPDX-License-Identifier: BSD-3-Clause
"""Reading quantize and dequantize operators: what an int8 tensor stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from etx_exir.ir.constants import Constants
from etx_exir.ir.ops import RESHAPES

PREFIX = "quantized_decomposed."
QUANTIZE = f"{PREFIX}quantize_per_tensor.default"
DEQUANTIZE = f"{PREFIX}dequantize_per_tensor.default"
DEQUANTIZE_CHANNELS = f"{PREFIX}dequantize_per_channel.default"
INT8 = (-128, 127)


def called(node: object) -> str:
    """Return the name of the operator that `node` calls, '' for anything else."""
    return str(node.target) if isinstance(node, Node) and node.op == "call_function" else ""


def ranged(choose: Node) -> Any:
    """Return the tensor whose range `choose` finds: of ``cat(x, -x)``, which has it twice, x."""
    found: Any = choose.args[0]
    if called(found) != "aten.cat.default":
        return found
    parts: Any = found.args[0]
    if len(parts) == 2 and called(parts[1]) == "aten.neg.default" and parts[1].args[0] is parts[0]:
        return parts[0]
    return found


@dataclass(frozen=True)
class Scale:
    """What the integers of a tensor stand for: (q - zero_point) * scale, q from low to high."""

    scale: float
    zero_point: int
    low: int = INT8[0]
    high: int = INT8[1]

    def same(self, other: Scale) -> bool:
        """Tell whether equal integers stand for equal numbers."""
        return (self.scale, self.zero_point) == (other.scale, other.zero_point)

    def quantize(self, value: float) -> int:
        """Return the integer that stands for `value`, within the bounds."""
        if value in (float("inf"), float("-inf")):
            return self.high if value > 0 else self.low
        rounded = torch.tensor(value, dtype=torch.float32) * (1 / self.scale)
        return min(max(int(rounded.round()) + self.zero_point, self.low), self.high)


@dataclass(frozen=True)
class Operand:
    """An int8 tensor in the graph and what it stands for."""

    node: Node
    scale: Scale


def scale_of(node: Node) -> Scale | str:
    """Return the scale of a quantize or dequantize per tensor, or why it has none for int8."""
    given: Any = node.args[1:6]
    scale, zero_point, low, high, dtype = given
    if dtype is not torch.int8:
        return f"the integers are {dtype}, the integer operators take int8"
    if not isinstance(scale, float) or not isinstance(zero_point, int):
        return "scale and zero point are computed at run time"
    if not 0 < scale < float("inf") or not INT8[0] <= zero_point <= INT8[1]:
        return f"scale {scale} or zero point {zero_point} is out of range"
    return Scale(scale, zero_point, max(int(low), INT8[0]), min(int(high), INT8[1]))


def operand(node: object) -> Operand | str:
    """Return the int8 tensor of which `node` is the float form, or why there is none."""
    if called(node) != DEQUANTIZE:
        return "an operand is not quantized"
    assert isinstance(node, Node)
    if node.meta["val"].dtype is not torch.float32:
        return "an operand is dequantized to something else than float32"
    source, scale = node.args[0], scale_of(node)
    assert isinstance(source, Node)
    return scale if isinstance(scale, str) else Operand(source, scale)


@dataclass(frozen=True)
class Weight:
    """A symmetric int8 weight, one scale for each index of `axis` or for all (None)."""

    value: Tensor
    scales: Tensor
    axis: int | None
    name: str

    def channel_scales(self, axis: int, count: int) -> Tensor | None:
        """Return `count` scales in float64 along `axis`, None when they lie along another."""
        if self.axis is None:
            return self.scales.expand(count)
        return self.scales if self.axis == axis else None


def weight_of(node: object, constants: Constants) -> Weight | str:
    """Return the constant int8 weight of which `node` is the float form, or why there is none."""
    name = called(node)
    if name not in (DEQUANTIZE, DEQUANTIZE_CHANNELS):
        return "the weight is not quantized"
    assert isinstance(node, Node)
    args: Any = node.args
    value = stored(args[0], constants)
    if value is None or value.dtype is not torch.int8:
        return "the weight is not an int8 constant"
    if name == DEQUANTIZE:
        axis, scales, zeros = None, args[1], args[2]
    else:
        scales, zeros, axis = stored(args[1], constants), stored(args[2], constants), args[3]
        if scales is None or (zeros is None and args[2] is not None):
            return "the scales of the weight are not constants"
        axis %= value.dim()
    if zeros is not None and bool(torch.as_tensor(zeros).any()):
        return "the weight has a zero point other than 0"
    numbers = torch.as_tensor(scales, dtype=torch.float64)
    if not bool((numbers > 0).all() & numbers.isfinite().all()):
        return "a scale of the weight is not a positive number"
    return Weight(value, numbers, axis, constants.name(_seen_through(args[0])))


def bias_of(node: object, constants: Constants) -> Tensor | None:
    """Return the constant that `node` is, or the float form of which it is: biases may be int32."""
    name = called(node)
    if name not in (DEQUANTIZE, DEQUANTIZE_CHANNELS):
        return constants.get(node)
    assert isinstance(node, Node)
    args: Any = node.args
    value = stored(args[0], constants)
    scales, zeros = args[1:3]
    if name == DEQUANTIZE_CHANNELS:
        scales, zeros = stored(scales, constants), stored(zeros, constants)
        if scales is None or zeros is None:
            return None
    if value is None or value.dim() != 1:
        return None
    numbers = torch.as_tensor(scales, dtype=torch.float64)
    return (value.double() - torch.as_tensor(zeros, dtype=torch.float64)) * numbers


def stored(node: Any, constants: Constants) -> Tensor | None:
    """Return the constant that `node` is, or is a view of: those in branches are not folded."""
    source = _seen_through(node)
    found = constants.get(source)
    return found if found is None or source is node else found.reshape(node.meta["val"].shape)


def _seen_through(node: Any) -> Any:
    while isinstance(node, Node) and node.target in RESHAPES:
        node = node.args[0]
    return node
