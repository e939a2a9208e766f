# SPDX-License-Identifier: BSD-3-Clause
"""torchvision's operators as torch computes them, for environments in which its own do not load:
their names and schemas, registered with what the documentation says they return."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.library import Library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Keep boxes by falling scores, unless one that is kept overlaps by more than the threshold."""
    boxes = dets if dets.dtype == torch.float64 else dets.float()
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(2)
    beyond = (shared / (area[:, None] + area - shared)).double() > iou_threshold
    kept: list[int] = []
    for i in torch.sort(scores, descending=True, stable=True).indices.tolist():
        if not beyond[i, kept].any():
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def _points(
    low: Tensor, high: Tensor, size: int, bins: int, ratio: int, aligned: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return, for each bin and sample of a region: two pixels, their parts, which are inside."""
    length = high - low if aligned else (high - low).clamp(min=1)
    bin_size = length / bins
    count = ratio if ratio > 0 else max(int(bin_size.nan_to_num(0).ceil()), 0)
    steps = (torch.arange(count) + 0.5).to(low.dtype) * bin_size / max(count, 1)
    at = low + (torch.arange(bins).to(low.dtype) * bin_size)[:, None] + steps
    inside = (at >= -1) & (at <= size)
    at = torch.where(inside, at.clamp(min=0), 0)
    near = at.to(torch.int64).clamp(max=size - 1)
    far = (near + 1).clamp(max=size - 1)
    part = torch.where(near >= size - 1, 0, at - near)
    return near, far, 1 - part, part, inside


def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """Return the mean of samples between pixels in each bin of each region, in the dtype of all."""
    found = input.new_zeros(rois.shape[0], input.shape[1], pooled_height, pooled_width)
    scale = torch.tensor(spatial_scale, dtype=input.dtype)
    for r, roi in enumerate(rois):
        image = input[int(roi[0])]
        left, top, right, bottom = roi[1:] * scale - (0.5 if aligned else 0)
        y = _points(top, bottom, image.shape[1], pooled_height, sampling_ratio, aligned)
        x = _points(left, right, image.shape[2], pooled_width, sampling_ratio, aligned)
        total = torch.zeros_like(found[r])
        for i in range(y[0].shape[1]):
            for j in range(x[0].shape[1]):
                ys, xs = [each[:, i, None] for each in y], [each[:, j] for each in x]
                sample = ys[2] * xs[2] * image[:, ys[0], xs[0]]
                sample = sample + ys[2] * xs[3] * image[:, ys[0], xs[1]]
                sample = sample + ys[3] * xs[2] * image[:, ys[1], xs[0]]
                sample = sample + ys[3] * xs[3] * image[:, ys[1], xs[1]]
                total = total + torch.where(ys[4] & xs[4], sample, 0)
        found[r] = total / max(y[0].shape[1] * x[0].shape[1], 1)
    return found


def fake_nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return as many indices as the data say: torchvision gives no bound either."""
    count = torch.library.get_ctx().new_dynamic_size()
    return dets.new_empty(count, dtype=torch.int64)


def fake_roi_align(
    input: Tensor, rois: Tensor, scale: float, height: int, width: int, ratio: int, aligned: bool
) -> Tensor:
    return input.new_empty((rois.shape[0], input.shape[1], height, width))


OPERATORS: dict[str, tuple[str, Callable[..., Any], Callable[..., Any]]] = {
    "nms": ("(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", nms, fake_nms),
    "roi_align": (
        "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
        "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
        roi_align,
        fake_roi_align,
    ),
}


def define_operators() -> Library | None:
    """Register them for as long as the library lives; none where torchvision has its own."""
    spec = find_spec("torchvision")
    for own in Path(spec.origin).parent.glob("_C*.so") if spec and spec.origin else ():
        with suppress(OSError):  # It wants CUDA's libraries, or another torch.
            torch.ops.load_library(own)
    if hasattr(torch.ops.torchvision, "nms"):
        return None
    library = Library("torchvision", "FRAGMENT")
    for name, (schema, function, fake) in OPERATORS.items():
        library.define(name + schema)
        library.impl(name, function, "CPU")
        torch.library.register_fake(f"torchvision::{name}", fake, lib=library)
    return library


@contextmanager
def torchvision_operators() -> Iterator[None]:
    """Register them for a while."""
    library = define_operators()
    yield
    if library is not None:
        library._destroy()
