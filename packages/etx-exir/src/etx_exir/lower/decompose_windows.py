# SPDX-License-Identifier: BSD-3-Clause
"""Pools of three dimensions by those of two, gradients of average pools, and bags of embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import statically_known_true

from etx_exir.errors import LoweringError
from etx_exir.lower.decompose_scans import running_in_groups
from etx_exir.lower.in_float32 import NARROW, in_float32

__all__ = ["WINDOWS"]

aten = torch.ops.aten

MEAN, MAX = 1, 2
"""Modes of embedding_bag; 0 is the sum."""


def _each(value: int | Sequence[int], dims: int, default: Sequence[int] = ()) -> list[int]:
    items = [value] if isinstance(value, int) else list(value) or list(default)
    return items * dims if len(items) == 1 else items


def _is_dynamic(sizes: Sequence[Any]) -> bool:
    return any(isinstance(size, torch.SymInt) for size in sizes)


def _fixed(sizes: Sequence[Any]) -> None:
    if _is_dynamic(sizes):
        raise LoweringError(
            f"its windows depend on the dynamic sizes {tuple(sizes)}; export it with fixed sizes"
        )


def _divided(x: Tensor, by: Tensor | float) -> Tensor:
    return x / by if x.is_floating_point() else torch.div(x, by, rounding_mode="trunc")


def _sizes(
    out: int, size: int, window: tuple[int, int, int], include_pad: bool, like: Tensor
) -> Tensor:
    """Return how many elements each window (length, stride, padding) of an average counts."""
    length, stride, padding = window
    start = torch.arange(out, device=like.device) * stride - padding
    end = (start + length).clamp(max=size + padding)
    if not include_pad:
        start, end = start.clamp(min=0), end.clamp(max=size)
    return (end - start).to(like.dtype)


def _avg_pool3d(
    self: Tensor,
    kernel_size: list[int],
    stride: Sequence[int] = (),
    padding: int | list[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """Pool planes, then depth: sums where all windows count as many, else averages."""
    kernel = _each(kernel_size, 3)
    strides, pads = _each(stride, 3, kernel), _each(padding, 3)
    *lead, depth, height, width = self.shape
    n, c = lead if len(lead) == 2 else (1, *lead)
    even = not ceil_mode and (count_include_pad or not any(pads))
    total = divisor_override or (math.prod(kernel) if even else None)
    whole = total is None and not self.is_floating_point()
    options = (ceil_mode, count_include_pad)
    x = self.reshape(n, c * depth, height, width)
    first = 1 if total or whole else None
    x = aten.avg_pool2d.default(x, kernel[1:], strides[1:], pads[1:], *options, first)
    high, wide = x.shape[-2:]
    x = x.reshape(n, c, depth, high * wide)
    window = ([kernel[0], 1], [strides[0], 1], [pads[0], 0])
    x = aten.avg_pool2d.default(x, *window, *options, 1 if whole else total)
    x = x.reshape(*lead, x.shape[2], high, wide)
    if whole:
        for i, size in enumerate((depth, height, width)):
            taken = (kernel[i], strides[i], pads[i])
            counts = _sizes(x.shape[i - 3], size, taken, count_include_pad, self)
            x = _divided(x, counts.view([-1, *[1] * (2 - i)]))
    return x


def _adaptive_avg_pool3d(self: Tensor, output_size: list[int]) -> Any:
    if all(statically_known_true(size == 1) for size in output_size):
        return self.mean([-3, -2, -1], keepdim=True)
    *lead, depth, height, width = self.shape
    n, c = lead if len(lead) == 2 else (1, *lead)
    deep, high, wide = output_size
    x = aten._adaptive_avg_pool2d.default(self.reshape(n, c * depth, height, width), [high, wide])
    x = x.reshape(n, c, depth, high * wide)
    x = aten._adaptive_avg_pool2d.default(x, [deep, high * wide])
    return x.reshape(*lead, deep, high, wide)


def _max_pool3d(
    self: Tensor,
    kernel_size: list[int],
    stride: Sequence[int] = (),
    padding: int | list[int] = 0,
    dilation: int | list[int] = 1,
    ceil_mode: bool = False,
) -> Any:
    kernel = _each(kernel_size, 3)
    strides = _each(stride, 3, kernel)
    pads, steps = _each(padding, 3), _each(dilation, 3)
    *lead, depth, height, width = self.shape
    n, c = lead if len(lead) == 2 else (1, *lead)
    x, plane = aten.max_pool2d_with_indices.default(
        self.reshape(n, c * depth, height, width),
        *(kernel[1:], strides[1:], pads[1:], steps[1:], ceil_mode),
    )
    high, wide = x.shape[-2:]
    place = _in_volume(plane, (n, c, depth, high * wide), height * width)
    x, layer = aten.max_pool2d_with_indices.default(
        x.reshape(n, c, depth, high * wide),
        *([kernel[0], 1], [strides[0], 1], [pads[0], 0], [steps[0], 1], ceil_mode),
    )
    shape = [*lead, x.shape[2], high, wide]
    return x.reshape(shape), _picked(place, layer).reshape(shape)


def _in_volume(plane: Tensor, shape: tuple[int, int, int, int], area: int) -> Tensor:
    """Return places in planes as such in the volumes whose layers they are, as `shape`."""
    layers = torch.arange(0, shape[2] * area, area, device=plane.device)
    result: Tensor = aten.add.Tensor(plane.reshape(shape), layers.unsqueeze(1))
    return result


def _picked(place: Tensor, layer: Tensor) -> Tensor:
    """Return the elements of `place` that `layer` names in its last two dimensions."""
    result: Tensor = aten.gather.default(place.flatten(2), 2, layer.flatten(2))
    return result


def _longest(size: int, out: int) -> int:
    """Return the length of the longest adaptive window."""
    return max(-(-(i + 1) * size // out) - i * size // out for i in range(out))


def _side_by_side(size: int, out: int, like: Tensor) -> Tensor:
    """Return the elements of adaptive windows, one after the other, all as long as the longest:
    the last element of a shorter one repeats."""
    window = torch.arange(out, device=like.device)
    start = (window * size // out).unsqueeze(1)
    last = ((window * size + (size + out - 1)) // out - 1).unsqueeze(1)
    step = torch.arange(_longest(size, out), device=like.device)
    return torch.minimum(start + step, last).reshape(-1)


def _adaptive_max_planes(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return maxima over adaptive windows of the last two dimensions, and their places there."""
    sizes = x.shape[-2:]
    uneven = [size % out != 0 for size, out in zip(sizes, output_size, strict=True)]
    kernel = [_longest(size, out) for size, out in zip(sizes, output_size, strict=True)]
    tables = []
    for dim, size, out, spread in zip((2, 3), sizes, output_size, uneven, strict=True):
        even = torch.arange(size, device=x.device)
        tables.append(_side_by_side(size, out, x) if spread else even)
        if spread:
            x = aten.index_select.default(x, dim, tables[-1])
    values, place = aten.max_pool2d_with_indices.default(x, kernel, kernel)
    if any(uneven):
        rows, columns = tables
        table = (rows.unsqueeze(1) * sizes[1] + columns).reshape(-1)
        place = aten.index_select.default(table, 0, place.reshape(-1)).reshape(place.shape)
    return values, place


def _adaptive_max_to_one(self: Tensor, output_size: list[int]) -> tuple[Tensor, Tensor]:
    dims = list(range(-len(output_size), 0))
    values = aten.amax.default(self, dims, True)
    return values, aten.argmax.default(self.flatten(dims[0]), -1).reshape(values.shape)


def _adaptive_max_pool2d(self: Tensor, output_size: list[int]) -> Any:
    *lead, height, width = self.shape
    if _is_dynamic((height, width)) and all(size == 1 for size in output_size):
        return _adaptive_max_to_one(self, output_size)
    _fixed((height, width, *output_size))
    shape = [*lead, *output_size]
    if 0 in output_size:
        return self.new_empty(shape), self.new_empty(shape, dtype=torch.int64)
    n, c = lead if len(lead) == 2 else (1, *lead)
    values, place = _adaptive_max_planes(self.reshape(n, c, height, width), output_size)
    return values.reshape(shape), place.reshape(shape)


def _adaptive_max_pool3d(self: Tensor, output_size: list[int]) -> Any:
    *lead, depth, height, width = self.shape
    deep, high, wide = output_size
    if _is_dynamic((depth, height, width)) and all(size == 1 for size in output_size):
        return _adaptive_max_to_one(self, output_size)
    _fixed((depth, height, width, *output_size))
    shape = [*lead, *output_size]
    if 0 in output_size:
        return self.new_empty(shape), self.new_empty(shape, dtype=torch.int64)
    n, c = lead if len(lead) == 2 else (1, *lead)
    x, plane = _adaptive_max_planes(self.reshape(n, c * depth, height, width), [high, wide])
    x = x.reshape(n, c, depth, high * wide)
    place = _in_volume(plane, (n, c, depth, high * wide), height * width)
    x, layer = _adaptive_max_planes(x, [deep, high * wide])
    return x.reshape(shape), _picked(place, layer).reshape(shape)


def _spread(x: Tensor, dim: int, first: Tensor, last: Tensor, most: int, even: bool) -> Tensor:
    """Return for each place the sum of the windows that hold it, of which it has `most` at most;
    `even` says that all have as many."""
    shape = [-1, *[1] * (-1 - dim)]
    nothing = x.new_zeros([])
    parts = []
    for step in range(most):
        window = last if step == 0 else last - step
        part = aten.index_select.default(x, dim, window.clamp(min=0))
        if not even:
            part = aten.where.self((window >= first).view(shape), part, nothing)
        parts.append(part)
    total: Tensor = reduce(torch.add, parts)
    return total


def _avg_pool2d_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: list[int],
    stride: Sequence[int],
    padding: int | list[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    kernel = _each(kernel_size, 2)
    strides, pads = _each(stride, 2, kernel), _each(padding, 2)
    windows = list(zip(kernel, strides, pads, strict=True))
    outs, sizes = grad_output.shape[-2:], self.shape[-2:]
    if divisor_override or (not ceil_mode and (count_include_pad or not any(pads))):
        x = _divided(grad_output, divisor_override or math.prod(kernel))
    else:
        counted = zip(outs, sizes, windows, strict=True)
        rows, columns = (_sizes(*item, count_include_pad, grad_output) for item in counted)
        x = _divided(grad_output, rows.unsqueeze(1) * columns)
    for dim, out, size, (length, step, pad) in zip((-2, -1), outs, sizes, windows, strict=True):
        place = torch.arange(size, device=x.device) + pad
        first = (place + (step - length)) // step
        tiles = length == step and pad == 0 and statically_known_true(size == out * length)
        last = (place // step).clamp(max=out - 1)
        x = _spread(x, dim, first.clamp(min=0), last, -(-length // step), tiles)
    return x


def _adaptive_avg_pool2d_backward(grad_output: Tensor, self: Tensor) -> Any:
    outs, sizes = grad_output.shape[-2:], self.shape[-2:]
    _fixed((*outs, *sizes))
    if all(size % out == 0 for size, out in zip(sizes, outs, strict=True)):
        kernel = [size // out for size, out in zip(sizes, outs, strict=True)]
        return _avg_pool2d_backward(grad_output, self, kernel, kernel, 0, False, True, None)
    lengths = []
    for size, out in zip(sizes, outs, strict=True):
        window = torch.arange(out, device=self.device)
        end = (window * size + (size + out - 1)) // out
        lengths.append((end - window * size // out).to(grad_output.dtype))
    x = aten.div.Tensor(grad_output, lengths[0].unsqueeze(1) * lengths[1])
    for dim, size, out in zip((-2, -1), sizes, outs, strict=True):
        place = torch.arange(size, device=x.device)
        last = (place * out + (out + size - 1)) // size - 1
        x = _spread(x, dim, place * out // size, last, _longest(out, size), size % out == 0)
    return x


def _bag_of_each(indices: Tensor, offsets: Tensor) -> Tensor:
    """Return the bag of each index: how many begin up to it, less one."""
    length = indices.shape[0]
    begun = offsets.new_zeros([length + 1])
    begun = aten.scatter_add.default(begun, 0, offsets, torch.ones_like(offsets))
    count = aten.cumsum.default(begun, 0).narrow(0, 0, length)
    result: Tensor = aten.sub.Scalar(count, 1)
    return result


def _added_up(x: Tensor, bag: Tensor, bags: int, offsets: Tensor) -> Tensor:
    """Return the sum of each bag's rows; what comes after the last offset is left out."""
    zeros = x.new_zeros([offsets.shape[0], *x.shape[1:]])
    total: Tensor = aten.index_put.default(zeros, [bag], x, True)
    return total if bags == offsets.shape[0] else total[:bags]


def _largest(
    rows: Tensor, bag: Tensor, kept: Tensor | None, count: Tensor, offsets: Tensor, last: bool
) -> tuple[Tensor, Tensor]:
    """Return each bag's largest row, by column, and the place where that comes first."""
    length, bags = rows.shape[0], count.shape[0]
    if statically_known_true(length == 0):
        shape = [bags, rows.shape[1]]
        return rows.new_zeros(shape), offsets.new_zeros(shape)
    ends = offsets[1:] if last else torch.cat([offsets[1:], offsets.new_full([1], length)])
    final = (ends - 1).clamp(min=0)
    none, group = (count == 0).unsqueeze(1), bag.unsqueeze(1)
    if kept is not None:
        rows = aten.masked_fill.Scalar(rows, kept.logical_not().unsqueeze(1), -math.inf)
    most = running_in_groups(aten.maximum.default, rows, group, 0, -math.inf)[final]
    here = rows == torch.cat([most, most[:1]])[bag] if last else rows == most[bag]
    if kept is not None:
        here = here & kept.unsqueeze(1)
    place = torch.arange(length, 0, -1, device=rows.device).unsqueeze(1)
    behind = torch.where(here, place, 0)
    behind = running_in_groups(aten.maximum.default, behind, group, 0, 0)[final]
    return aten.masked_fill.Scalar(most, none, 0), length - behind


def _embedding_bag(count_offsets: bool) -> Callable[..., Any]:
    """Return the decomposition; `count_offsets`: of a sum, sizes are given for all offsets."""

    def compute(
        weight: Tensor,
        indices: Tensor,
        offsets: Tensor,
        scale_grad_by_freq: bool = False,
        mode: int = 0,
        sparse: bool = False,
        per_sample_weights: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int = -1,
    ) -> Any:
        dtype, starts = torch.promote_types(indices.dtype, offsets.dtype), offsets.to(torch.int64)
        bags = offsets.shape[0] - 1 if include_last_offset else offsets.shape[0]
        bag = _bag_of_each(indices, starts)
        kept = indices != padding_idx if padding_idx >= 0 else None
        rows = aten.index_select.default(weight, 0, indices)
        rows = rows.to(torch.float32) if mode != MAX and rows.dtype in NARROW else rows
        ones = torch.ones_like(bag) if kept is None else kept.to(torch.int64)
        count = _added_up(ones, bag, bags, starts)
        if mode == MAX:
            out, place = _largest(rows, bag, kept, count, starts, include_last_offset)
            nothing = torch.cat([indices, indices.new_zeros([1])]).to(dtype)
            found = nothing[torch.where((count == 0).unsqueeze(1), indices.shape[0], place)]
            return out, bag.to(dtype), count.to(dtype), found
        if per_sample_weights is not None:
            rows = rows * per_sample_weights.to(rows.dtype).unsqueeze(1)
        if kept is not None:
            rows = torch.where(kept.unsqueeze(1), rows, 0.0)
        out = _added_up(rows, bag, bags, starts)
        if mode == MEAN:
            out = out / count.clamp(min=1).to(out.dtype).unsqueeze(1)
            return out.to(weight.dtype), bag.to(dtype), count.to(dtype), count.to(dtype)
        fast = kept is None and weight.dtype in (*NARROW, torch.float32)
        bag = bag.new_empty([0]) if fast else bag
        none = bag.new_zeros([offsets.shape[0] if count_offsets else bags], dtype=dtype)
        return out.to(weight.dtype), bag.to(dtype), none, none.clone()

    return compute


WINDOWS: dict[OpOverload, Callable[..., Any]] = {
    aten.avg_pool3d.default: in_float32(_avg_pool3d),
    aten._adaptive_avg_pool3d.default: in_float32(_adaptive_avg_pool3d),
    aten.max_pool3d_with_indices.default: _max_pool3d,
    aten.adaptive_max_pool2d.default: _adaptive_max_pool2d,
    aten.adaptive_max_pool3d.default: _adaptive_max_pool3d,
    aten._embedding_bag.default: _embedding_bag(count_offsets=False),
    aten._embedding_bag_forward_only.default: _embedding_bag(count_offsets=True),
    aten.avg_pool2d_backward.default: in_float32(_avg_pool2d_backward),
    aten._adaptive_avg_pool2d_backward.default: in_float32(_adaptive_avg_pool2d_backward),
}
