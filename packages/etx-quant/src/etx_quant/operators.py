# SPDX-License-Identifier: BSD-3-Clause
"""Embeddings of packed rows: ExecuTorch's operators, for eager and for torch.export.

They are registered when a model first needs one, unless they are there already: in a process that
imports executorch, too, import that first.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

__all__ = ["embedding", "pack"]

NAMES = {8: "embedding_byte", 4: "embedding_4bit", 2: "embedding_2bit"}
SHIFTS = {4: (4, 0), 2: (0, 2, 4, 6)}
"""Where the numbers of a byte begin, in their order."""
SCHEMA = (
    "(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, "
    "int weight_quant_max, Tensor indices) -> Tensor"
)
NAMESPACE = "quantized_decomposed"


def pack(values: Tensor, bits: int) -> Tensor:
    """Return rows of int8 numbers packed: as they are, or two or four a byte."""
    if bits == 8:
        return values
    shifts = torch.tensor(SHIFTS[bits])
    stored = (values.int() + 2 ** (bits - 1)).reshape(values.shape[0], -1, 8 // bits)
    packed: Tensor = (stored << shifts).sum(-1).to(torch.uint8)
    return packed


def unpack(packed: Tensor, bits: int) -> Tensor:
    """Return the numbers that ``pack`` has packed."""
    if bits == 8:
        return packed
    fields = (packed.int()[..., None] >> torch.tensor(SHIFTS[bits])) & (2**bits - 1)
    numbers: Tensor = fields.flatten(-2) - 2 ** (bits - 1)
    return numbers


def embedding(bits: int) -> OpOverload:
    """Return the operator for tables of ``bits`` bits; register it where it is not yet."""
    namespace = torch.ops.quantized_decomposed
    if not hasattr(namespace, NAMES[bits]):
        _register(bits)
    found: OpOverload = getattr(namespace, NAMES[bits]).default
    return found


@cache
def _library() -> torch.library.Library:
    return torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]


def _register(bits: int) -> None:
    library: Any = _library()
    name = NAMES[bits]
    library.define(f"{name}{SCHEMA}")
    library.impl(name, partial(_rows, bits), "CompositeExplicitAutograd")
    library.impl(name, partial(_shape, bits), "Meta")


def _rows(
    bits: int,
    weight: Tensor,
    scales: Tensor,
    zeros: Tensor | None,
    low: int,
    high: int,
    indices: Tensor,
) -> Tensor:
    scale = scales.reshape(weight.shape[0], -1)[indices]
    values = unpack(weight[indices], bits).reshape(*scale.shape, -1).to(scale.dtype)
    if zeros is not None:
        values = values - zeros.reshape(weight.shape[0], -1)[indices][..., None].to(scale.dtype)
    rows: Tensor = (values * scale[..., None]).flatten(-2)
    return rows


def _shape(
    bits: int,
    weight: Tensor,
    scales: Tensor,
    zeros: Tensor | None,
    low: int,
    high: int,
    indices: Tensor,
) -> Tensor:
    columns = weight.shape[1] * (8 // bits)
    return weight.new_empty((*indices.shape, columns), dtype=scales.dtype)
