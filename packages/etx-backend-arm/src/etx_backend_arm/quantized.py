# SPDX-License-Identifier: BSD-3-Clause
"""What quantize and dequantize nodes say: integers around an operator, weights as integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed
from torch import Tensor
from torch.fx import Node

__all__ = [
    "DEQUANTIZE",
    "INDEXED",
    "OF_CHANNELS",
    "QUANTIZE",
    "Affine",
    "Step",
    "Weight",
    "affine",
    "clamp_of",
    "find_step",
    "is_index",
    "split_of",
    "weight_of",
    "with_quantized",
]

aten = torch.ops.aten
decomposed = torch.ops.quantized_decomposed
QUANTIZE = decomposed.quantize_per_tensor.default
DEQUANTIZE = decomposed.dequantize_per_tensor.default
OF_CHANNELS = decomposed.dequantize_per_channel.default
FILLED = (
    aten.arange.start_step,
    aten.eye.default,
    aten.full.default,
    aten.ones.default,
    aten.scalar_tensor.default,
    aten.zeros.default,
)
"""What makes a tensor of nothing but numbers, such as the first state of a recurrent layer."""
Look = Callable[[object], "Tensor | None"]


INDEXED = (
    aten.embedding.default,
    aten.gather.default,
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_select.default,
    aten.masked_fill.Scalar,
    aten.where.self,
)
"""What reads numbers of rows, or truths, beside values."""


@dataclass(frozen=True)
class Affine:
    """real = (integer - zero_point) * scale, for integers from ``low`` to ``high``."""

    scale: float
    zero_point: int
    low: int
    high: int
    dtype: torch.dtype = torch.int8

    @property
    def is_wide(self) -> bool:
        """Tell whether the integers have 16 bits."""
        return self.dtype == torch.int16

    def limits(self, low: int, high: int) -> bool:
        """Tell whether bounds leave out what the type has; the least of 16 bits is not missed."""
        least, most = (-(2**15) + 1, 2**15 - 1) if self.is_wide else (-128, 127)
        return low > least or high < most

    def integer(self, real: float) -> int:
        """Return the nearest integer that stands for a real number."""
        near = real / self.scale + self.zero_point
        return round(min(max(near, self.low), self.high))


@dataclass(frozen=True)
class Weight:
    """Integers, and one scale for each channel of ``axis``, or one of all (``axis`` None).

    ``is_narrow``: they are from -7 to 7, by their program.
    """

    integers: Tensor
    scales: Tensor
    axis: int | None
    is_narrow: bool = False


@dataclass(frozen=True)
class Step:
    """An operator between integers.

    ``sources`` are the nodes of its integer activations; ``clamp`` is an operator behind it that
    only limits its range; ``result`` is the node that quantizes what comes out.
    """

    node: Node
    sources: tuple[Node, ...]
    forms: tuple[Affine, ...]
    clamp: Node | None
    result: Node
    form: Affine

    @property
    def bounds(self) -> tuple[int, int]:
        """Return the least and the greatest integer of the result."""
        if self.clamp is None:
            return self.form.low, self.form.high
        low, high = clamp_of(self.clamp) or (None, None)
        least = self.form.low if low is None else self.form.integer(low)
        return least, self.form.high if high is None else self.form.integer(high)


def with_quantized(look: Look) -> Look:
    """Return a function that knows what a node makes that quantizes a constant, too."""
    made: dict[Node, Tensor] = {}

    def held(node: object) -> Tensor | None:
        found = look(node)
        if found is not None or not isinstance(node, Node) or node.target is not QUANTIZE:
            return found
        inner = look(node.args[0])
        if inner is not None and node not in made:
            made[node] = QUANTIZE(inner.detach(), *node.args[1:])
        return made.get(node)

    return held


def affine(node: Node) -> Affine | None:
    """Return the parameters of a node that quantizes or dequantizes int8, or int16 around 0."""
    if node.target not in (QUANTIZE, DEQUANTIZE):
        return None
    _, scale, zero_point, low, high, dtype = node.args
    if not isinstance(scale, float) or not isinstance(zero_point, int):
        return None
    if dtype != torch.int8 and (dtype != torch.int16 or zero_point):
        return None
    if not scale > torch.finfo(torch.float32).tiny:
        return None
    return Affine(scale, zero_point, int(low), int(high), dtype)  # type: ignore[arg-type]


def clamp_of(node: Node) -> tuple[float | None, float | None] | None:
    """Return the bounds of an operator that limits a range; None for another operator."""
    if node.target is aten.relu.default:
        return 0.0, None
    if node.target is aten.hardtanh.default:
        given: Any = [*node.args[1:], *(-1.0, 1.0)[len(node.args) - 1 :]]
        return float(given[0]), float(given[1])
    if node.target is aten.clamp.default:
        low, high = (*node.args[1:], None, None)[:2]
        if all(each is None or isinstance(each, (int, float)) for each in (low, high)):
            return low, high  # type: ignore[return-value]
    return None


def weight_of(node: object, look: Look) -> Weight | None:
    """Return the int8 weight that a dequantizing node stands for; None where it has another form.

    ``look`` returns the tensor of a constant's placeholder, None for other nodes.
    """
    if not isinstance(node, Node) or node.op != "call_function":
        return None
    integers = look(node.args[0]) if node.args else None
    if integers is None or integers.dtype != torch.int8:
        return None
    if node.target is DEQUANTIZE:
        form = affine(node)
        if form is None or form.zero_point or form.is_wide:
            return None
        scale = torch.tensor([form.scale], dtype=torch.float64)
        return Weight(integers, scale, None, _is_narrow(form.low, form.high))
    if node.target is not OF_CHANNELS:
        return None
    scales, points = look(node.args[1]), look(node.args[2])
    if scales is None or points is None or bool(points.any()):
        return None
    given: Any = node.args[3:6]
    axis, low, high = given
    narrow = _is_narrow(low, high)
    return Weight(integers, scales.to(torch.float64), axis % integers.dim(), narrow)


def _is_narrow(low: Any, high: Any) -> bool:
    return bool(low >= -7 and high <= 7)


def split_of(node: Node) -> Node | None:
    """Return the operator that a node picks one result of; None where it is an operator."""
    source = node.args[0] if node.target is operator.getitem else None
    return source if isinstance(source, Node) else None


def is_index(node: Node) -> bool:
    """Tell whether the elements of a node's tensor are numbers of rows, or truths."""
    held = node.meta["val"]
    return isinstance(held, Tensor) and held.dtype in (torch.int32, torch.int64, torch.bool)


def find_step(node: Node, look: Look) -> Step | str:
    """Return the integer form of an operator, or why it has none."""
    sources, forms = [], []
    maker = split_of(node) or node
    for arg in maker.all_input_nodes:
        if look(arg) is not None or weight_of(arg, look) is not None:
            continue
        if arg.target is DEQUANTIZE and look(arg.args[0]) is not None:
            continue
        if maker.target is aten.lstm.input and arg.target in FILLED:
            continue
        if maker.target in INDEXED and is_index(arg):
            continue
        form = affine(arg) if arg.target is DEQUANTIZE else None
        if form is None:
            return f"{arg.name}, an input of {node.name}, is not dequantized from int8"
        assert isinstance(arg.args[0], Node)
        sources.append(arg.args[0])
        forms.append(form)
    if not sources and maker.target not in (aten.embedding.default, *FILLED):
        return f"no input of {node.name} is dequantized from int8"
    if node.target is QUANTIZE:
        own = affine(node)
        if own is None:
            return f"{node.name} does not quantize to int8 with one scale"
        return Step(node, tuple(sources), tuple(forms), None, node, own)
    last, clamp = node, None
    readers = list(node.users)
    if len(readers) == 1 and clamp_of(readers[0]) is not None:
        last = clamp = readers[0]
        readers = list(last.users)
    made = affine(readers[0]) if readers else None
    if len(readers) != 1 or made is None:
        names = ", ".join(sorted(str(reader.target) for reader in readers))
        return f"the result of {last.name} is not only quantized to int8 (it is read by {names})"
    return Step(node, tuple(sources), tuple(forms), clamp, readers[0], made)
