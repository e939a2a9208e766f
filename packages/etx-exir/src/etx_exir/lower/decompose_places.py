# SPDX-License-Identifier: BSD-3-Clause
"""Decompositions of what reads or writes at places that are computed: strides, diagonals, where
numbers are not 0, and the windows of fractional pools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

aten = torch.ops.aten


def _as_strided_scatter(
    self: Tensor,
    src: Tensor,
    size: Sequence[Any],
    stride: Sequence[Any],
    storage_offset: Any = None,
) -> Any:
    count = self.numel()
    places = torch.arange(count, device=self.device)
    places = places.as_strided(size, stride, storage_offset or 0).reshape(-1)
    flat = aten.scatter.src(self.reshape(-1), 0, places, src.reshape(-1))
    return flat.reshape(self.shape)


def _diagonal_scatter(
    self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Any:
    x = self.movedim((dim1, dim2), (-2, -1))
    places = torch.arange(src.shape[-1], device=self.device)
    rows, columns = places + max(-offset, 0), places + max(offset, 0)
    outer: list[Tensor | None] = [None] * (x.dim() - 2)
    found = aten.index_put.default(x, [*outer, rows, columns], src.to(self.dtype))
    return found.movedim((-2, -1), (dim1, dim2))


def _put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    flat, places = self.reshape(-1), index.reshape(-1)
    found = aten.index_put.default(flat, [places], source.reshape(-1), accumulate)
    return found.reshape(self.shape)


def _scatter_reduce(self: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Any:
    how = {"add": "sum", "multiply": "prod"}[reduce]
    return aten.scatter_reduce.two(self, dim, index, src.to(self.dtype), how)


def _scatter_value_reduce(self: Tensor, dim: int, index: Tensor, value: Any, *, reduce: str) -> Any:
    src = torch.full(index.shape, value, dtype=self.dtype, device=self.device)
    return _scatter_reduce(self, dim, index, src, reduce=reduce)


def _new_empty_strided(
    self: Tensor,
    size: Sequence[Any],
    stride: Sequence[Any],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> Any:
    return torch.empty_strided(size, stride, dtype=dtype or self.dtype, device=self.device)


def _nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Any:
    """Number what is not 0, and note its places under these numbers; a last one takes the rest."""
    count = self.numel()
    flat = aten.ne.Scalar(self.reshape(-1), 0)
    number = aten.cumsum.default(flat.to(torch.int64), 0) - 1
    kept = aten.logical_and.default(flat, aten.lt.Scalar(number, size))
    slot = torch.where(kept, number, size)
    flats = torch.full([size + 1], -1, dtype=torch.int64, device=self.device)
    flats = aten.scatter.src(flats, 0, slot, torch.arange(count, device=self.device))
    flats = flats.narrow(0, 0, size)
    none, columns = aten.lt.Scalar(flats, 0), []
    for length in reversed(self.shape):
        whole = max(length, 1)
        columns.append(torch.where(none, fill_value, flats % whole))
        flats = flats // whole
    if not columns:
        return torch.empty([size, 0], dtype=torch.int64, device=self.device)
    return torch.stack(columns[::-1], 1)


def _starts(sample: Tensor, size: int, window: int, out: int) -> Tensor:
    """Return where each of `out` windows begins: as far apart as they can be, in steps that the
    sample moves ("Fractional max-pooling", Graham, 2014), the last at the end."""
    last = torch.full((*sample.shape, 1), size - window, device=sample.device)
    if out == 1:
        return last
    step = (size - window) / (out - 1)
    x = sample.unsqueeze(-1)
    places = torch.arange(out - 1, dtype=sample.dtype, device=sample.device)
    starts = ((places + x) * step).to(torch.int64) - (x * step).to(torch.int64)
    return torch.cat([starts, last], -1)


def _fractional_max_pool(order: tuple[int, ...]) -> Callable[..., Any]:
    """Return a pool whose samples belong to these dimensions of space."""
    dims = len(order)

    def compute(
        self: Tensor,
        kernel_size: Sequence[int],
        output_size: Sequence[int],
        random_samples: Tensor,
    ) -> Any:
        x = self if self.dim() == dims + 2 else self.unsqueeze(0)
        n, c, *sizes = x.shape
        flat = torch.zeros((n, c, *[1] * (2 * dims)), dtype=torch.int64, device=x.device)
        for i, (size, window, out) in enumerate(zip(sizes, kernel_size, output_size, strict=True)):
            sample = random_samples.select(-1, order[i]).reshape(n, c)
            place = _starts(sample, size, window, out).unsqueeze(-1)
            place = place + torch.arange(window, device=x.device)
            shape = [n, c, *[1] * (2 * dims)]
            shape[2 + i], shape[2 + dims + i] = out, window
            flat = flat * size + place.reshape(shape)
        flat = flat.flatten(2 + dims)
        pixels = x.flatten(2)
        values = pixels.gather(-1, flat.flatten(2)).reshape(flat.shape)
        most, first = aten.max.dim(values, -1)
        indices = flat.gather(-1, first.unsqueeze(-1)).squeeze(-1)
        if self.dim() == dims + 2:
            return most, indices
        return most.squeeze(0), indices.squeeze(0)

    return compute


PLACES: dict[OpOverload, Callable[..., Any]] = {
    aten.as_strided_scatter.default: _as_strided_scatter,
    aten.diagonal_scatter.default: _diagonal_scatter,
    aten.put.default: _put,
    aten.scatter.reduce: _scatter_reduce,
    aten.scatter.value_reduce: _scatter_value_reduce,
    aten.tril_indices.default: torch._refs.tril_indices,
    aten.triu_indices.default: torch._refs.triu_indices,
    aten.new_empty_strided.default: _new_empty_strided,
    aten.nonzero_static.default: _nonzero_static,
    aten.fractional_max_pool2d.default: _fractional_max_pool((1, 0)),
    aten.fractional_max_pool3d.default: _fractional_max_pool((0, 1, 2)),
}
