# SPDX-License-Identifier: BSD-3-Clause
"""Sizes of windows over images."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.fx import Node


def both(value: Any) -> list[int]:
    """Return a size for height and width, of one or two numbers."""
    sizes = [value] if isinstance(value, int) else list(value)
    return sizes * 2 if len(sizes) == 1 else sizes


def ends(
    image: Node, result: Tensor, reach: list[int], stride: list[int], padding: list[int]
) -> list[int] | str:
    """Return the padding behind the image that the last windows of `result` reach into."""
    sizes = [*image.meta["val"].shape[-2:], *result.shape[-2:]]
    if not all(isinstance(n, int) for n in sizes):
        return "whether the last windows reach over the edge is known at run time only"
    height, width, *counts = sizes
    last = [(n - 1) * s + r for n, s, r in zip(counts, stride, reach, strict=True)]
    before = zip(last, (height, width), padding, strict=True)
    return [max(end - n - p, 0) for end, n, p in before]
