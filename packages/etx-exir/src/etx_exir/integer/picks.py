# SPDX-License-Identifier: BSD-3-Clause
"""Operators that pick rows and columns of images: they copy the bytes of whole pixels."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from etx_exir.integer.layout import Layouts

aten = torch.ops.aten

PICKS = (
    aten.reflection_pad1d.default,
    aten.reflection_pad2d.default,
    aten.replication_pad1d.default,
    aten.replication_pad2d.default,
    aten.upsample_nearest1d.vec,
    aten.upsample_nearest2d.vec,
)


def pick(node: Node, source: Node, layouts: Layouts) -> Node | str:
    """Return `node` of the integers `source` (N, C, ...): the last dimension first, the least."""
    sizes = source.meta["val"].shape[2:]
    rank = source.meta["val"].dim()
    if rank != node.meta["val"].dim() or not all(isinstance(n, int) for n in sizes):
        return "the size of the image is known at run time only"
    if rank < 3 or (rank == 3 and "2d" in str(node.target)):
        return "only batches of images are resized and padded in integers"
    image = layouts.channels_last(source)
    for dim, index in reversed([*enumerate(_indices(node, list(sizes)), 1)]):
        if index.tolist() != list(range(sizes[dim - 1])):
            stored = layouts.constant(index, f"{node.name}_picks")
            image = layouts.call(aten.index_select.default, image, dim, stored)
    return layouts.channels_first(image)


def _indices(node: Node, sizes: list[int]) -> list[Tensor]:
    """Return which index of each dimension `node` takes from an image of these sizes."""
    target: Any = node.target
    numbers = torch.arange(math.prod(sizes), dtype=torch.float64).view(1, 1, *sizes)
    taken = target(numbers, *node.args[1:], **node.kwargs)[0, 0].long()
    indices = []
    for dim, size in enumerate(sizes):
        step = math.prod(sizes[dim + 1 :])
        indices.append(taken.movedim(dim, 0).reshape(taken.shape[dim], -1)[:, 0] // step % size)
    return indices
