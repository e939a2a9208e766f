# SPDX-License-Identifier: BSD-3-Clause
"""What a part of a program takes in XNNPACK and in ETX's own kernels, by figures measured once.

`tools/measure.py` writes the figures. They are those of one machine and one shape a kind: they tell
a part that loses many times over from others, not which of two good kernels is a fifth faster.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.fx import Node

from etx_backend_xnnpack.layout import hint
from etx_backend_xnnpack.nodes.table import TABLE, Work, shape_of
from etx_backend_xnnpack.quantized import affine, argument, dynamic, is_quantization, weight

MARGIN = 3.0
"""A part stays out where XNNPACK and the crossing take more than this times ETX's own kernels:
within it are other machines, and shapes for which one side has a kernel of its own."""
FEW_ROWS = 8
LAID_OUT = ("convolution", "pointwise", "depthwise", "pool")
Look = Any
Key = tuple[str, str]


@dataclass(frozen=True)
class Cost:
    """Nanoseconds of a part in ETX's own kernels, in XNNPACK, and of going there and back."""

    own: float
    inside: float
    crossing: float

    @property
    def pays(self) -> bool:
        """Tell whether XNNPACK takes no more than ETX's kernels, within the margin."""
        return self.inside + self.crossing <= MARGIN * self.own

    def __str__(self) -> str:
        return (
            f"XNNPACK takes about {_time(self.inside + self.crossing)} for its part of the "
            f"program, {_time(self.crossing)} of it to get there and back, ETX's own kernels "
            f"{_time(self.own)}"
        )


def _time(nanoseconds: float) -> str:
    if nanoseconds < 1e3:
        return f"{nanoseconds:.0f} ns"
    return f"{nanoseconds / 1e3:.3g} us" if nanoseconds < 1e6 else f"{nanoseconds / 1e6:.3g} ms"


@cache
def figures() -> dict[str, Any]:
    """Return what was measured: picoseconds a product or element, nanoseconds a call."""
    found: dict[str, Any] = json.loads(
        (Path(__file__).parent / "speeds.json").read_text(encoding="utf-8")
    )
    return found


def cost(group: Collection[Node], look: Look) -> Cost:
    """Estimate a part; `look` returns the tensor of a constant's placeholder."""
    own = inside = 0.0
    moves = False
    for node in group:
        if node.target in TABLE:
            precision, kind, work = _job(node, look)
            speed = figures()["speeds"].get(precision, {}).get(kind)
            speed = speed or figures()["speeds"]["float32"][kind]
            own += work * speed["own"] / 1000
            inside += work * speed["xnnpack"] / 1000
            moves |= kind in LAID_OUT
    turned = sum(_elements(value) for value in _edges(group, look)) if moves else 0
    return Cost(own, inside, figures()["call"] + turned * figures()["transpose"] / 1000)


def _edges(group: Collection[Node], look: Look) -> list[Tensor]:
    """Return the images that come in or go out, whose dimensions change places."""
    inner = set(group)
    read = {arg for node in group for arg in node.all_input_nodes if arg not in inner}
    read = {arg for arg in read if look(arg) is None}
    made = {node for node in group if any(user not in inner for user in node.users)}
    values = (node.meta.get("val") for node in (*read, *made))
    return [v for v in values if isinstance(v, Tensor) and v.dim() == 4 and hint(v.shape[1]) > 1]


def _elements(value: object) -> int:
    if isinstance(value, (list, tuple)):
        return sum(map(_elements, value))
    return math.prod(map(hint, value.shape)) if isinstance(value, Tensor) else 1


def _job(node: Node, look: Look) -> tuple[str, str, int]:
    """Return in what numbers a node computes, the kind of it, and how much."""
    row = TABLE[node.target]
    if row.work is Work.MOVES:
        return "float32", "move", _elements(node.meta["val"])
    if row.kind == "convolution":
        return _precision(node, look), *_convolution(node)
    if row.kind == "linear":
        inner = hint(shape_of(_activation(node))[-1])
        outputs = _elements(node.meta["val"])
        few = outputs // max(hint(shape_of(node)[-1]), 1) < FEW_ROWS
        return _precision(node, look), "row" if few else "linear", inner * outputs
    if row.kind == "product":
        inner = hint(shape_of(node.args[0])[-1])
        return "float32", "product", inner * _elements(node.meta["val"])
    if row.kind == "attention":
        query, key, value = (shape_of(arg) for arg in node.args[:3])
        rows = math.prod(map(hint, query[:-1])) * hint(key[-2])
        return "float32", "attention", rows * (hint(query[-1]) + hint(value[-1]))
    first = node.all_input_nodes[0] if node.all_input_nodes else node
    work = max(_elements(node.meta["val"]), _elements(first.meta.get("val")))
    return _precision(node, look), row.kind, work


def _activation(node: Node) -> Any:
    return node.args[1 if "addmm" in str(node.target) else 0]


def _convolution(node: Node) -> tuple[str, int]:
    filters = [hint(size) for size in shape_of(node.args[1])]
    turned, groups = argument(node, "transposed"), argument(node, "groups")
    outputs = node.args[0].meta["val"] if turned else node.meta["val"]  # type: ignore[union-attr]
    work = _elements(outputs) * math.prod(filters[1:])
    if groups > 1 and filters[1] == 1:
        return "depthwise", work
    return "pointwise" if math.prod(filters[2:]) == 1 else "convolution", work


def _precision(node: Node, look: Look) -> str:
    given = node.all_input_nodes
    if any(dynamic(arg) is not None for arg in given):
        weights = (weight(arg, look) for arg in given)
        return "int4" if any(each and each.bits == 4 for each in weights) else "rows"
    activation = given[0] if given else None
    if activation is not None and is_quantization(activation) and affine(activation) is not None:
        return "int8"
    return "float32"
