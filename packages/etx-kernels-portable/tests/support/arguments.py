# SPDX-License-Identifier: BSD-3-Clause
"""What a kernel is called with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import etx_schema
import torch
from etx_schema.dtypes import DTYPE_SETS

DTYPES = {
    getattr(torch, name): number
    for number, (name, _) in etx_schema.dtypes.DTYPES.items()
    if name in DTYPE_SETS["any"]
}
FORMATS = {torch.contiguous_format: 0, torch.preserve_format: 1, torch.channels_last: 2}


@dataclass(frozen=True)
class Parameter:
    letter: str
    written: bool
    optional: bool


def parse_signature(text: str) -> list[Parameter]:
    found: list[Parameter] = []
    for letter in text:
        if letter == "!":
            found[-1] = Parameter(found[-1].letter, True, found[-1].optional)
        elif letter == "?":
            found[-1] = Parameter(found[-1].letter, found[-1].written, True)
        else:
            found.append(Parameter(letter, False, False))
    return found


@dataclass
class Out:
    """A tensor the harness makes for a kernel to write: memory for `slack` more in each size."""

    shape: Sequence[int]
    dtype: torch.dtype
    dim_order: Sequence[int] | None = None
    slack: int = 1


class Slot:
    """A scalar slot that a kernel writes."""


@dataclass(frozen=True)
class Same:
    """The very value of an argument before."""

    index: int


@dataclass(frozen=True)
class Over:
    """A tensor to be written that is like an argument before and lies on its memory."""

    index: int


def dim_order_of(tensor: torch.Tensor) -> list[int] | None:
    """Return the dim order of a tensor that is dense in row-major or channels-last order."""
    if tensor.is_contiguous():
        return list(range(tensor.dim()))
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return [0, 2, 3, 1]
    return None
