# SPDX-License-Identifier: BSD-3-Clause
"""Clamps between an operator and its quantization, as bounds of the integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Node

from etx_exir.integer.scales import DEQUANTIZE, Scale, called

aten = torch.ops.aten
INF = float("inf")


def _relu(node: Node) -> tuple[float, float]:
    return 0.0, INF


def _bounds(low: float, high: float) -> Callable[[Node], tuple[float, float] | None]:
    def read(node: Node) -> tuple[float, float] | None:
        given = (*node.args[1:3], None, None)[:2]
        found = [default if n is None else n for n, default in zip(given, (low, high), strict=True)]
        if node.kwargs or not all(isinstance(n, (int, float)) for n in found):
            return None
        return float(found[0]), float(found[1])  # type: ignore[arg-type]

    return read


CLAMPS: dict[Any, Callable[[Node], tuple[float, float] | None]] = {
    aten.relu.default: _relu,
    aten.hardtanh.default: _bounds(-1.0, 1.0),
    aten.clamp.default: _bounds(-INF, INF),
}


@dataclass(frozen=True)
class Clamped:
    """An operator whose result is clamped and quantized, and what its integers stand for."""

    source: Node
    scale: Scale


def clamped(quantize: Node, scale: Scale) -> Clamped | str:
    """Return the operator behind the clamps that only `quantize` reads."""
    node: Any = quantize.args[0]
    reader, low, high = quantize, -INF, INF
    while called(node) != DEQUANTIZE:
        if any(user is not reader for user in node.users):
            return "another operator reads the float result"
        read = CLAMPS.get(node.target)
        bounds = None if read is None else read(node)
        if bounds is None:
            break
        # What is read later holds: clamp(clamp(x, a, b), c, d) is within c and d.
        low, high = min(max(bounds[0], low), high), max(min(bounds[1], high), low)
        reader, node = node, node.args[0]
    integers = sorted((scale.quantize(low), scale.quantize(high)))
    return Clamped(node, replace(scale, low=integers[0], high=integers[1]))
