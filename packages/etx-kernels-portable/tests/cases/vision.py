# SPDX-License-Identifier: BSD-3-Clause
"""torchvision's operators, as support/torchvision_stand_in.py registers them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torchvision_stand_in as stand_in
from case import BF16, F16, F32, F64, Case
from torch.library import Library
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

FLOATING = (F32, F64, F16, BF16)
DEFINED = stand_in.define_operators()
OUTS = Library("torchvision", "FRAGMENT")
for name, (schema, _, _) in stand_in.OPERATORS.items():
    given = schema.removesuffix(") -> Tensor")
    OUTS.define(f"{name}.out{given}, *, Tensor(a!) out) -> Tensor(a!)")


def boxes(count: int, dtype: torch.dtype) -> torch.Tensor:
    corners = torch.rand(count, 2) * 12 - 1
    return torch.cat([corners, corners + torch.rand(count, 2) * 10], 1).to(dtype)


def suppressed(
    info: Any, device: Any, dtype: torch.dtype, requires_grad: bool, **kwargs: Any
) -> Iterator[SampleInput]:
    for count, threshold in ((40, 0.5), (40, 0.1), (40, 0.0), (9, 1.0), (1, 0.5), (0, 0.5)):
        yield SampleInput(boxes(count, dtype), torch.rand(count).to(dtype), threshold)
    for threshold in (0.9, 1e300, -1e300):
        yield SampleInput(boxes(200, dtype), torch.rand(200).to(dtype), threshold)
    twice = boxes(6, dtype).repeat(3, 1)
    ties = torch.tensor([0.5, 0.25, 0.5, 1, 1, 0.25]).repeat(3).to(dtype)
    for threshold in (0.3, 1.0):
        yield SampleInput(twice, ties, threshold)
    flat = boxes(8, dtype)
    flat[::2, 2:] = flat[::2, :2]
    flat[1] = flat[1].roll(2)
    for threshold in (0.4, -0.5):
        yield SampleInput(flat.repeat(2, 1), torch.rand(16).to(dtype), threshold)
    yield SampleInput(boxes(8, dtype).t().contiguous().t(), torch.rand(8).to(dtype), 0.4)
    odd = torch.tensor([0.5, torch.nan, torch.inf, -torch.inf, 0.0, -0.0, torch.nan, 2]).to(dtype)
    yield SampleInput(boxes(8, dtype), odd, 0.2)
    unknown = boxes(8, dtype)
    unknown[3, 1] = torch.nan
    yield SampleInput(unknown, torch.rand(8).to(dtype), 0.2)


def aligned(
    info: Any, device: Any, dtype: torch.dtype, requires_grad: bool, **kwargs: Any
) -> Iterator[SampleInput]:
    images = torch.randn(3, 3, 7, 9).to(dtype)
    image = torch.tensor([[0.0], [1], [1], [0], [1]]).to(dtype)
    regions = torch.cat([image, boxes(5, dtype)], 1)
    reversed_ = torch.cat([image, boxes(5, dtype).roll(2, 1)], 1)
    outside = torch.tensor([[1.0, -40, -3, 60, 2], [0, 9, 7, 30, 40], [0, 3, 3, 3, 3]]).to(dtype)
    for last in (True, False):
        for rows in (regions, outside, reversed_):
            yield SampleInput(images, rows, 0.5, 3, 2, 2, last)
            yield SampleInput(images, rows, 1.0, 2, 3, 0, last)
        yield SampleInput(images, regions, 0.3, 1, 1, -1, last)
        yield SampleInput(images, regions[:0], 0.5, 2, 2, 2, last)
        for rows in (regions, reversed_, outside):
            yield SampleInput(images, rows, 1.0, 1, 2, 90, last)
        yield SampleInput(images, outside, 30.0, 2, 3, 0, last)
    layout = images.contiguous(memory_format=torch.channels_last)
    yield SampleInput(layout, regions, 0.25, 7, 7, 2, True)
    yield SampleInput(images[:, :, :1, :1].contiguous(), regions, 0.25, 2, 2, 1, False)
    unknown = regions.clone()
    unknown[2, 3] = torch.nan
    yield SampleInput(images, unknown, 0.5, 2, 2, 0, True)
    yield SampleInput(images[:, :0], regions, 0.5, 2, 2, 2, True)


def own(name: str, samples: Any) -> OpInfo:
    op = getattr(torch.ops.torchvision, name)
    return OpInfo(f"torchvision.{name}", op=op, dtypes=set(FLOATING), sample_inputs_func=samples)


NMS, ALIGN = own("nms", suppressed), own("roi_align", aligned)

CASES = [
    Case("torchvision.nms", dtypes=FLOATING, samples=30, own=NMS),
    Case("torchvision.roi_align", dtypes=FLOATING, samples=30, own=ALIGN),
]
