# SPDX-License-Identifier: BSD-3-Clause
"""Weights in bfloat16: which may be stored so, and how."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from etx_exir.ir.constants import Constants

__all__ = ["EMBEDDING", "READERS", "float32_weight", "narrowed"]

aten = torch.ops.aten
EMBEDDING = aten.embedding.default
READERS: dict[Any, int] = {aten.linear.default: 1, aten.convolution.default: 1, EMBEDDING: 0}
"""By operator whose weight may be bfloat16, which argument that is."""


def float32_weight(node: Node, constants: Constants) -> Tensor | str | None:
    """Return the float32 weight of `node`, None where it has another dtype, or why it stays."""
    given: Any = node.args[READERS[node.target]]
    if given.meta["val"].dtype is not torch.float32:
        return None
    weight = constants.get(given)
    if weight is None:
        return "its weight is computed: only what is stored is stored in half"
    if any(_reads_as_float(reader, given, constants) for reader in constants.readers(given)):
        return "another operator reads the weight, which would be stored twice"
    if bool(weight.bfloat16().isfinite().all()) != bool(weight.isfinite().all()):
        return "a weight is beyond the largest number of bfloat16"
    return weight


def _reads_as_float(reader: Node, given: Node, constants: Constants) -> bool:
    place = READERS.get(reader.target)
    if place is None:
        return True
    held = constants.get(given)
    others = (arg for i, arg in enumerate(reader.args) if i != place)
    return any(constants.get(arg) is held for arg in others)


def narrowed(weight: Tensor, channels_last: bool = False) -> Tensor:
    """Return `weight` rounded to bfloat16, with its second dimension innermost where asked."""
    narrow = weight.detach().bfloat16()
    if not channels_last:
        return narrow.contiguous()
    return narrow.movedim(1, -1).contiguous().movedim(-1, 1)
