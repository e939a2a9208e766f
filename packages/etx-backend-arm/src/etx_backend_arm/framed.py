# SPDX-License-Identifier: BSD-3-Clause
"""Pads that mirror or repeat, blocks and windows, as SLICE, REVERSE, TILE and CONCAT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from etx_backend_arm.writer import Writer, part

__all__ = ["FRAMES", "framed", "unshuffled", "windows"]

aten = torch.ops.aten
MOST_WINDOWS = 64
"""More of them stay as they are."""


def unshuffled(w: Writer) -> None:
    """Move blocks of an image into channels."""
    x, by = w.given["self"], w.given["downscale_factor"]
    *batch, channels, height, width = map(int, x.meta["val"].shape)
    blocks = [*batch, channels, height // by, by, width // by, by]
    rank = len(batch)
    order = [*range(rank), rank, rank + 2, rank + 4, rank + 1, rank + 3]
    made = w.call(aten.permute.default, w.call(aten.reshape.default, x, blocks), order)
    w.done(w.call(aten.reshape.default, made, list(w.node.meta["val"].shape)))


def windows(w: Writer) -> None:
    """Lay the windows along a dimension side by side; those that adjoin each other are a view."""
    x, dim, size, step = (w.given[name] for name in ("self", "dimension", "size", "step"))
    shape = list(map(int, x.meta["val"].shape))
    if not shape or (count := (shape[dim] - size) // step + 1) > MOST_WINDOWS:
        return
    dim %= len(shape)
    if step == size:
        kept = part(w, x, dim, 0, count * size)
        made = w.call(aten.reshape.default, kept, [*shape[:dim], count, size, *shape[dim + 1 :]])
    else:
        bands = (part(w, x, dim, i * step, i * step + size) for i in range(count))
        rows = [w.call(aten.unsqueeze.default, band, dim) for band in bands]
        made = rows[0] if count == 1 else w.call(aten.cat.default, rows, dim)
    order = [*range(dim + 1), *range(dim + 2, len(shape) + 1), dim + 1]
    last = order == list(range(len(order)))
    w.done(made if last else w.call(aten.permute.default, made, order))


def framed(mode: str) -> Callable[[Writer], None]:
    """Pad with what is next to a border, mirrored or repeated, a dimension at a time.

    Without ``mode`` the operator says which.
    """

    def rewrite(w: Writer) -> None:
        pads = w.given.get("padding") or w.given["pad"]
        chosen, made = mode or w.given["mode"], w.given["self"]
        if chosen not in ("reflect", "replicate") or min(pads) < 0:
            return
        for i in range(len(pads) // 2):
            made = _bordered(w, made, -1 - i, (pads[2 * i], pads[2 * i + 1]), chosen)
        w.done(made)

    return rewrite


def _bordered(w: Writer, x: Node, dim: int, pads: tuple[int, int], mode: str) -> Node:
    size = int(x.meta["val"].shape[dim])
    parts = [x]
    for is_behind, count in enumerate(pads):
        if not count:
            continue
        if mode == "reflect":
            ends = (size - 1 - count, size - 1) if is_behind else (1, 1 + count)
            band = w.call(aten.flip.default, part(w, x, dim, *ends), [dim])
        else:
            ends = (size - 1, size) if is_behind else (0, 1)
            shape = list(x.meta["val"].shape)
            shape[dim] = count
            band = w.call(aten.expand.default, part(w, x, dim, *ends), shape)
        parts.insert(len(parts) if is_behind else 0, band)
    return x if len(parts) == 1 else w.call(aten.cat.default, parts, dim)


FRAMES: dict[Any, Callable[[Writer], None]] = {
    **dict.fromkeys(
        (
            aten.reflection_pad1d.default,
            aten.reflection_pad2d.default,
            aten.reflection_pad3d.default,
        ),
        framed("reflect"),
    ),
    **dict.fromkeys(
        (
            aten.replication_pad1d.default,
            aten.replication_pad2d.default,
            aten.replication_pad3d.default,
        ),
        framed("replicate"),
    ),
}
