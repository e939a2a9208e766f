# SPDX-License-Identifier: BSD-3-Clause
"""Constant int8 weights of convolutions over one or two dimensions, transposed ones too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from etx_exir.integer.layout import Layouts
from etx_exir.integer.scales import Weight, weight_of
from etx_exir.ir.constants import Constants
from etx_exir.ir.ops import SQUEEZE, UNSQUEEZE
from etx_exir.ir.packed_weights import ROWS, pack

Convolve = Callable[[Node, Layouts], Node]
"""Adds the convolution of an image (N, H, W, C)."""


@dataclass(frozen=True)
class Geometry:
    """A convolution over two dimensions; `padding` is top, left, bottom, right."""

    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    spacing: Sequence[int]
    groups: int


def _each(given: Any, kernel: Sequence[int]) -> list[Any]:
    """Return a number for each dimension of `kernel`, where one may stand for all."""
    return [*given] * len(kernel) if len(given) == 1 else [*given]


def _geometry(node: Node, kernel: Sequence[int]) -> Geometry | str:
    transposed: Any = node.args[6]
    groups: Any = node.args[8]
    stride, padding, dilation, extra = (_each(node.args[i], kernel) for i in (3, 4, 5, 7))
    if not all(isinstance(n, int) for n in (*stride, *padding, *dilation, *extra)):
        return "a parameter of the convolution is computed at run time"
    if not transposed:
        return Geometry(stride, [*padding, *padding], dilation, [1] * len(stride), groups)
    before = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)]
    after = [b + e for b, e in zip(before, extra, strict=True)]
    if min(*before, *after) < 0:
        return "the padding of the transposed convolution cuts its result"
    return Geometry([1] * len(stride), [*before, *after], dilation, stride, groups)


def _oriented(weight: Tensor, node: Node) -> Tensor:
    """Return what lies like the weight of a convolution as (O, C / groups, ...)."""
    groups: Any = node.args[8]
    if not node.args[6]:
        return weight
    rows, columns, *kernel = weight.shape
    flipped = weight.flip(*range(2, weight.dim())) if kernel else weight
    split = flipped.reshape(groups, rows // groups, columns, *kernel).transpose(1, 2)
    return split.reshape(groups * columns, rows // groups, *kernel)


@dataclass(frozen=True)
class Kernel:
    """The weight (O, C / groups, ...) of a convolution, with a scale for each output channel."""

    value: Tensor
    scales: Tensor
    geometry: Geometry
    name: str

    @property
    def rows(self) -> Tensor:
        """The matrix (O, depth) in the order in which a window is read: channels last."""
        return self.value.movedim(1, -1).reshape(self.value.shape[0], -1)

    def packed(self) -> Tensor:
        """Return the matrices of all groups, packed, one below the other."""
        return torch.cat([pack(part) for part in self.rows.chunk(self.geometry.groups)])

    def window(self) -> tuple[list[int], ...]:
        """Return the sizes of the kernel, stride, padding and dilation of two dimensions."""
        geometry, kernel = self.geometry, list(self.value.shape[2:])
        if len(kernel) == 2:
            moves = (geometry.stride, geometry.padding, geometry.dilation)
            return kernel, *map(list, moves)
        left, right = geometry.padding
        return [1, *kernel], [1, *geometry.stride], [0, left, 0, right], [1, *geometry.dilation]

    def spacing(self) -> list[int]:
        """Return the distance of neighbours of the input, of two dimensions."""
        return [1, *self.geometry.spacing][-2:]


def kernel_of(node: Node, constants: Constants) -> Kernel | str:
    """Return the constant weight of a convolution over one or two dimensions, or why not."""
    image: Any = node.args[0]
    weight = weight_of(node.args[1], constants)
    if isinstance(weight, str):
        return weight
    if image.meta["val"].dim() != weight.value.dim() or weight.value.dim() not in (3, 4):
        return "only batches of one or two dimensions are convolved in integers"
    value = _oriented(weight.value, node)
    geometry = _geometry(node, value.shape[2:])
    if isinstance(geometry, str):
        return geometry
    scales = _output_scales(weight, node)
    if scales is None:
        return "the weight has a scale for each input channel, not for each output channel"
    return Kernel(value, scales, geometry, weight.name)


def groups_of_block(groups: int, channels: int) -> int:
    """Return how many groups of so many channels fill a block of a packed weight best.

    It divides all of them.
    """
    most = min(ROWS // max(channels, 1), groups)
    return max((count for count in range(1, most + 1) if groups % count == 0), default=1)


def convolved(image: Node, row: Convolve, layouts: Layouts) -> Node:
    """Add `row` of an image (N, C, ...), which is (N, H, W, C) there; of height 1 where flat."""
    flat = image.meta["val"].dim() == 3
    last = layouts.channels_last(image)
    result = row(layouts.call(UNSQUEEZE, last, 1) if flat else last, layouts)
    return layouts.channels_first(layouts.call(SQUEEZE, result, [1]) if flat else result)


def _output_scales(weight: Weight, node: Node) -> Tensor | None:
    """Return the scale of each output channel, None where it is not the same for all inputs."""
    rows, columns = weight.value.shape[:2]
    if weight.axis not in (None, 0, 1):
        return None
    scales = weight.scales if weight.axis else weight.scales.reshape(-1, 1)
    oriented = _oriented(scales.expand(rows, columns), node)
    return oriented[:, 0] if bool((oriented == oriented[:, :1]).all()) else None
