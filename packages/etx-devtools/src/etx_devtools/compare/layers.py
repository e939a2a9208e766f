# SPDX-License-Identifier: BSD-3-Clause
"""Layers of a quantized program: how much noise is by design, how much is the runtime's.

By design is what the quantized model in eager mode has against the float model; the runtime's is
what the device has against that quantized model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from etx_exir.ir.provenance import module_path
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node

from etx_devtools.compare.arrays import as_tensor, distance_of
from etx_devtools.compare.reference import Reference

__all__ = ["Layer", "Layers"]

QUANTIZE = "quantized_decomposed.quantize_per_tensor"
DEQUANTIZE = "quantized_decomposed.dequantize_per_tensor"
LAYERS = ("aten.conv", "aten.linear")
"""A batch norm behind one of these has become part of it; behind another it is a layer's own."""


@dataclass(frozen=True)
class Layer:
    """One result: signal to noise in decibels, of what `value` of the float model is.

    `design` is the quantized model's in eager mode, `device` that of what ran, both against the
    float model; `runtime` is what ran against the quantized model.
    """

    instruction: int
    value: str
    float_value: str
    module: str
    design: float
    device: float
    runtime: float


class Layers:
    """Pairs the values of a quantized model with those of the float model that it was made of."""

    def __init__(self, quantized: Reference, model: ExportedProgram) -> None:
        self.quantized, self.float = quantized, Reference(model)
        kept = {node.target for node in quantized.program.graph.nodes}
        places: dict[tuple[str, str, int], Node] = {}
        counts: dict[tuple[str, str], int] = {}
        for node in _calls(self.float):
            places[_place(node, counts)] = node
        counts = {}
        self.pairs: dict[str, str] = {}
        for node in _calls(quantized):
            other = places.get(_place(node, counts)) if "quantize" not in str(node.target) else None
            if other is None:
                continue
            if str(other.target).startswith(LAYERS):
                norms = (user for user in other.users if "batch_norm" in str(user.target))
                other = next((norm for norm in norms if norm.target not in kept), other)
            for same in _same(node):
                name = quantized.names.get(same)
                if name is not None and other in self.float.names:
                    self.pairs[name] = self.float.names[other]

    def values(self, call: Sequence[Any]) -> Mapping[str, list[Any]]:
        """Return the float model's values in a call, of those that the quantized one has, too."""
        bound = self.float.bind([as_tensor(item) for item in call])
        found, outputs = self.float.run(bound, frozenset(self.pairs.values()))
        self.float.new_state(outputs)
        return found

    def layer(
        self, instruction: int, name: str, got: Tensor, right: Tensor, known: Mapping[str, Any]
    ) -> Layer | None:
        """Return what is to say of a value, None where the float model has no such."""
        float_name = self.pairs.get(name, "")
        values = known.get(float_name, [])
        if not values or not isinstance(values[0], Tensor) or values[0].shape != got.shape:
            return None
        node = self.quantized.values[name].node
        if any(isinstance(arg, Node) for arg in node.args[1:]) and QUANTIZE in str(node.target):
            return None
        numbers = [_real(node, item) for item in (got, right)]
        return Layer(
            instruction,
            name,
            float_name,
            module_path(self.float.values[float_name].node) or "",
            distance_of(numbers[1], values[0].float()).snr_db,
            distance_of(numbers[0], values[0].float()).snr_db,
            distance_of(numbers[0], numbers[1]).snr_db,
        )


def _calls(side: Reference) -> Iterator[Node]:
    yield from (n for n in side.program.graph.nodes if n.op == "call_function")


def _same(node: Node) -> Iterator[Node]:
    """Yield a node, its result as integers, and these as numbers again."""
    yield node
    for user in node.users:
        if QUANTIZE in str(user.target):
            yield from (user, *(n for n in user.users if DEQUANTIZE in str(n.target)))


def _place(node: Node, counts: dict[tuple[str, str], int]) -> tuple[str, str, int]:
    """Return module, operator and how often both came before."""
    key = (module_path(node) or "", str(node.target).replace("_.default", ".default"))
    counts[key] = counts.get(key, -1) + 1
    return *key, counts[key]


def _real(node: Node, value: Tensor) -> Tensor:
    """Return the real numbers that the integers of a quantizing node mean."""
    if value.dtype.is_floating_point or QUANTIZE not in str(node.target):
        return value.float()
    scale, zero_point = node.args[1:3]
    offset: Any = zero_point
    real: Tensor = (value.to(torch.float32) - offset) * float(str(scale))
    return real
