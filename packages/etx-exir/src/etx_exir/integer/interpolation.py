# SPDX-License-Identifier: BSD-3-Clause
"""Bilinear upsampling of int8 images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from etx_exir.integer.clamps import Clamped
from etx_exir.integer.layers import Row, output
from etx_exir.integer.layout import Layouts
from etx_exir.integer.scales import operand
from etx_exir.ir.constants import Constants
from etx_exir.ir.integer_ops import INTERPOLATE, ONE

aten = torch.ops.aten


def _upsample(found: Clamped, constants: Constants, layouts: Layouts) -> Node | str:
    node = found.source
    x = operand(node.args[0])
    if isinstance(x, str):
        return x
    sizes = x.node.meta["val"].shape[2:]
    if not all(isinstance(n, int) for n in (*sizes, *node.meta["val"].shape[2:])):
        return "the size of the image is known at run time only"
    places = (_places(node, list(sizes), dim) for dim in range(2))
    stored = [layouts.constant(place, f"{node.name}_points") for place in places]
    result = layouts.call(
        INTERPOLATE,
        layouts.channels_last(x.node),
        *stored,
        x.scale.scale / found.scale.scale,
        x.scale.zero_point,
        *output(found.scale),
    )
    return layouts.channels_first(result)


def _places(node: Node, sizes: list[int], dim: int) -> Tensor:
    """Return where the results of `node` lie along a dimension: it is asked with a ramp."""
    target: Any = node.target
    shape = [1, 1, *(n if d == dim else 1 for d, n in enumerate(sizes))]
    ramp = torch.arange(sizes[dim], dtype=torch.float64).view(shape).expand(1, 1, *sizes)
    at = target(ramp, *node.args[1:], **node.kwargs)[0, 0].movedim(dim, 0)
    parts = (at.reshape(len(at), -1)[:, 0] * ONE).round().int()
    return torch.stack([parts // ONE, parts % ONE], 1)


UPSAMPLING: dict[Any, Row] = {aten.upsample_bilinear2d.vec: _upsample}
