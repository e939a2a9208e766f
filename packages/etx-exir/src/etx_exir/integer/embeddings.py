# SPDX-License-Identifier: BSD-3-Clause
"""Embeddings of packed rows: ExecuTorch's operators, as graphs need them."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

__all__ = ["bits_of", "packed_embedding", "packed_rows"]

NAMES = {8: "embedding_byte", 4: "embedding_4bit", 2: "embedding_2bit"}
SHIFTS = {4: (4, 0), 2: (0, 2, 4, 6)}
"""Where the numbers of a byte begin, in their order."""
SCHEMA = (
    "(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, "
    "int weight_quant_max, Tensor indices) -> Tensor"
)
NAMESPACE = "quantized_decomposed"


def bits_of(low: int, high: int, columns: int) -> int:
    """Return how many bits a number from `low` to `high` takes in rows of `columns` numbers."""
    fits = (b for b in (2, 4) if -(2 ** (b - 1)) <= low and high < 2 ** (b - 1))
    return next((bits for bits in fits if columns * bits % 8 == 0), 8)


def packed_rows(values: Tensor, bits: int) -> Tensor:
    """Return rows of int8 numbers packed: as they are, or two or four a byte."""
    if bits == 8:
        return values
    fields = (values.int() + 2 ** (bits - 1)).unflatten(-1, (-1, 8 // bits))
    packed: Tensor = (fields << torch.tensor(SHIFTS[bits])).sum(-1).to(torch.uint8)
    return packed


def packed_embedding(bits: int) -> OpOverload:
    """Return the operator for tables of `bits` bits; define it where no package has done so."""
    namespace = getattr(torch.ops, NAMESPACE)
    name = NAMES[bits]
    if not hasattr(namespace, name):
        library: Any = _library()
        library.define(f"{name}{SCHEMA}")
        library.impl(name, partial(_embedding, bits), "CompositeExplicitAutograd")
    found: OpOverload = getattr(namespace, name).default
    return found


@cache
def _library() -> torch.library.Library:
    return torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]


def _embedding(
    bits: int,
    weight: Tensor,
    scales: Tensor,
    zeros: Tensor | None,
    low: int,
    high: int,
    indices: Tensor,
) -> Tensor:
    rows = weight[indices]
    if bits < 8:
        fields = torch.stack([rows.int() >> shift for shift in SHIFTS[bits]], -1) & (2**bits - 1)
        rows = fields.flatten(-2) - 2 ** (bits - 1)
    scale = scales.reshape(len(scales), -1)[indices]
    numbers = rows.reshape(*scale.shape, -1).to(scale.dtype)
    if zeros is not None:
        numbers = numbers - zeros.reshape(len(zeros), -1)[indices][..., None].to(scale.dtype)
    found: Tensor = (numbers * scale[..., None]).flatten(-2)
    return found
