# SPDX-License-Identifier: BSD-3-Clause
"""Sizes of windows over images."""

from __future__ import annotations

from typing import Any

from torch.fx import Node


def both(value: Any) -> list[int]:
    """Return a size for height and width, of one or two numbers."""
    sizes = [value] if isinstance(value, int) else list(value)
    return sizes * 2 if len(sizes) == 1 else sizes


def whole(image: Node, kernel: list[int], stride: list[int], padding: list[int]) -> bool:
    """Tell whether windows end where the padded image does, so that rounding up adds none."""
    sizes = image.meta["val"].shape[-2:]
    rests = ((n + 2 * p - k) % s for n, k, s, p in zip(sizes, kernel, stride, padding, strict=True))
    return all(isinstance(rest, int) and rest == 0 for rest in rests)
