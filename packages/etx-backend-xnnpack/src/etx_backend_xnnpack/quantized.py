# SPDX-License-Identifier: BSD-3-Clause
"""What quantizing and dequantizing nodes say: parameters of activations, weights as integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed
from etx_exir.integer.scales import ranged
from etx_exir.ir.ops import arguments
from torch import Tensor
from torch.fx import Node

from etx_backend_xnnpack.builder import Affine

decomposed = torch.ops.quantized_decomposed

QUANTIZE = decomposed.quantize_per_tensor.default
DEQUANTIZE = decomposed.dequantize_per_tensor.default
OF_CHANNELS = decomposed.dequantize_per_channel.default
OF_GROUPS = decomposed.dequantize_per_channel_group.default
Look = Callable[[object], Tensor | None]
"""Returns the tensor of a constant's placeholder, None for other nodes."""


@dataclass(frozen=True)
class Weight:
    """Integers with the scales of their channels, or of groups of each channel's inputs.

    `scales` has no dimension for one scale of all, one for one a channel of dimension `axis`, two
    for (channels, groups). `bits` is 4 or 8.
    """

    integers: Tensor
    scales: Tensor
    axis: int = 0
    bits: int = 8

    def real(self) -> Tensor:
        """Return the numbers that the integers stand for."""
        scales = self.scales
        if scales.dim() == 2:
            groups = self.integers.reshape(*scales.shape, -1).to(torch.float32)
            return torch.flatten(groups * scales[..., None], 1)
        if scales.dim() == 1:
            shape = [1] * self.integers.dim()
            shape[self.axis] = -1
            scales = scales.reshape(shape)
        return self.integers.to(torch.float32) * scales


def argument(node: Node, name: str) -> Any:
    """Return an argument by the name that the operator's schema gives it."""
    return arguments(node)[name]


def affine(node: Node) -> Affine | None:
    """Return the parameters of a node that quantizes or dequantizes an int8 activation."""
    if node.target not in (QUANTIZE, DEQUANTIZE):
        return None
    if argument(node, "dtype") != torch.int8:
        return None
    return Affine(float(argument(node, "scale")), int(argument(node, "zero_point")))


def is_narrow(node: Node) -> bool:
    """Tell whether a quantizing node uses fewer than all values of int8."""
    return (argument(node, "quant_min"), argument(node, "quant_max")) not in (
        (-128, 127),
        (-127, 127),
    )


def weight(node: object, look: Look) -> Weight | None:
    """Return the weight that a dequantizing node stands for; None where it has another form."""
    if not isinstance(node, Node) or node.op != "call_function":
        return None
    reader = READERS.get(node.target)
    return None if reader is None else reader(node, look)


def _per_tensor(node: Node, look: Look) -> Weight | None:
    integers = look(node.args[0])
    given = affine(node)
    if integers is None or given is None or given.zero_point:
        return None
    return Weight(integers, torch.tensor(given.scale, dtype=torch.float32))


def _per_channel(node: Node, look: Look) -> Weight | None:
    integers, scales = look(node.args[0]), look(node.args[1])
    if integers is None or scales is None or integers.dtype != torch.int8:
        return None
    points = argument(node, "zero_points")
    found = None if points is None else look(points)
    if points is not None and (found is None or bool(found.any())):
        return None
    low, high = argument(node, "quant_min"), argument(node, "quant_max")
    bits = 4 if low >= -8 and high <= 7 else 8
    axis = argument(node, "axis") % integers.dim()
    return Weight(integers, scales.to(torch.float32), axis, bits)


def _per_group(node: Node, look: Look) -> Weight | None:
    integers, scales = look(node.args[0]), look(node.args[1])
    if integers is None or scales is None or integers.dtype != torch.int8:
        return None
    points = look(argument(node, "zero_points"))
    if argument(node, "zero_points") is not None and (points is None or bool(points.any())):
        return None
    if argument(node, "quant_min") < -8 or argument(node, "quant_max") > 7:
        return None
    return Weight(integers, scales.to(torch.float32), 0, 4)


READERS: dict[Any, Callable[[Node, Look], Weight | None]] = {
    DEQUANTIZE: _per_tensor,
    OF_CHANNELS: _per_channel,
    OF_GROUPS: _per_group,
}


@dataclass(frozen=True)
class Dynamic:
    """The nodes that quantize an activation at run time, and the activation."""

    source: Node
    nodes: tuple[Node, ...]


CHOOSE = (
    decomposed.choose_qparams.tensor,
    decomposed.choose_qparams_symmetric.tensor,
    decomposed.choose_qparams_per_token_asymmetric.default,
    decomposed._choose_qparams_per_token_asymmetric_impl.default,
)
QUANTIZE_AT_RUN_TIME = (
    decomposed.quantize_per_tensor.tensor,
    decomposed.quantize_per_token.default,
)
DEQUANTIZE_AT_RUN_TIME = (
    decomposed.dequantize_per_tensor.tensor,
    decomposed.dequantize_per_token.default,
)


def dynamic(node: object) -> Dynamic | None:
    """Return what a node dequantizes whose scale is computed at run time, None for others."""
    if not isinstance(node, Node) or node.target not in DEQUANTIZE_AT_RUN_TIME:
        return None
    quantize, scale, point = node.args[:3]
    if not isinstance(quantize, Node) or quantize.target not in QUANTIZE_AT_RUN_TIME:
        return None
    source = quantize.args[0]
    picks = (scale, point)
    if quantize.args[1:3] != picks or argument(node, "dtype") != torch.int8:
        return None
    if not all(isinstance(p, Node) and p.target is operator.getitem for p in picks):
        return None
    choose: Any = picks[0].args[0]  # type: ignore[union-attr]
    if choose.target not in CHOOSE or ranged(choose) is not source:
        return None
    assert isinstance(source, Node)
    return Dynamic(source, (choose, *picks, quantize, node))  # type: ignore[arg-type]


def is_quantization(node: Node) -> bool:
    """Tell whether a node only converts between real numbers and integers."""
    return (
        node.target in (QUANTIZE, DEQUANTIZE, OF_CHANNELS, OF_GROUPS)
        or node.target in CHOOSE
        or node.target in QUANTIZE_AT_RUN_TIME
        or node.target in DEQUANTIZE_AT_RUN_TIME
    )


def at_run_time(node: Node) -> bool:
    """Tell whether a node quantizes, or undoes it, with a scale that is computed at run time."""
    return node.target in (*CHOOSE, *QUANTIZE_AT_RUN_TIME, *DEQUANTIZE_AT_RUN_TIME)
