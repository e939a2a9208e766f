# SPDX-License-Identifier: BSD-3-Clause
"""Which elements of results hang on infinite or huge terms, and how large the terms of each are."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from differential.compare import UNITS, difference
from differential.operators import exact

if TYPE_CHECKING:
    from differential.calls import Call

LINEAR = (
    r"aten::(convolution(_backward)?|mm|bmm|addmm|linear|mean|sum|cumsum|_upsample_bilinear2d_aa"
    r"|upsample_bilinear2d|avg_pool2d|_adaptive_avg_pool2d|scatter_(add|reduce)|index_put_?)(\.\w+)?"
)
SPREADS = r"(std|var)(_mean)?\.\w+"
MEANS = rf"aten::(native_(layer|group)_norm\.out|_native_batch_norm_legit\w*\.\w+|{SPREADS})"
CANCELS = rf"{LINEAR}|aten::(_fft_\w+|_cdist_forward)\.out"
ADDED_NARROW = r"aten::(index_put_?|scatter_(add|reduce)|convolution\w*|cumsum)(\.\w+)?"
"""Eager adds up float16 and bfloat16 as such."""
ROOM = 8.0
"""What is that much less than the largest number of a dtype does not overflow on the way."""


def size_of(value: Any) -> Any:
    """The magnitude of a number or of each element of floating or complex tensors, in float64."""
    if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
        return value.double().abs()
    if isinstance(value, torch.Tensor) and value.is_complex():
        return value.to(torch.complex128).abs()
    return abs(value) if type(value) in (int, float) else value


def terms(call: Call) -> list[Any] | None:
    """Of each element of the results of a sum of products, the sum of its terms' magnitudes."""
    args = [size_of(a) if isinstance(a, torch.Tensor) else a for a in call.args]
    floating = call.expected[0].dtype.is_floating_point
    if not re.match(r"aten::(index_put|scatter_(add|reduce))", call.kernel.name) and floating:
        args = [
            a.double().abs() if isinstance(a, torch.Tensor) and not a.is_complex() else a
            for a in args
        ]
    if call.kernel.name == "aten::addmm.out":
        args = [size_of(a) for a in args]
    found = exact(call.kernel, args, call.dtype)
    return None if found is None else [t.double().abs() for t in found]


def reach_of_sums(call: Call) -> list[Any] | None:
    found = terms(call)
    if found is None or all(bool(t.isfinite().all()) for t in call.tensors):
        return found
    if not call.kernel.name.startswith("aten::convolution"):
        return beside_padding(call, found)
    # Zero padding times infinity is computed by some algorithms.
    pairs = zip(found, call.results, call.expected, strict=True)
    return [t.masked_fill(a.isnan() | b.isnan(), math.inf) for t, a, b in pairs]


def beside_padding(call: Call, reach: list[Any]) -> list[Any]:
    """The reach; without end where eager alone multiplied a tile's padding by infinity.

    So does oneDNN in bfloat16 where the processor has tiles: rows beside an infinite one are NaN.
    """
    truth = exact(call.kernel, call.args, call.dtype)
    if truth is None or not call.expected[0].dtype.is_floating_point:
        return reach
    found = []
    for got, want, best, size in zip(call.results, call.expected, truth, reach, strict=True):
        if not got.shape == want.shape == best.shape == size.shape:
            return reach
        step = UNITS[want.dtype] * best.double().abs()
        same = (got == best.to(got.dtype)) | ((got.double() - best.double()).abs() <= step)
        same |= near_its_terms(call, got, best.to(got.dtype), size)
        found.append(size.masked_fill(want.isnan() & ~best.isnan() & same, math.inf))
    return found


def reach_of_transform(call: Call) -> list[Any] | None:
    x = size_of(call.args[0])
    total = 2 * x.sum(call.args[1], keepdim=True)
    return [total.expand(call.expected[0].shape)]


def reach_of_grid(call: Call) -> list[Any] | None:
    """Positions beyond what integers count, and planes of huge numbers."""
    x, grid = size_of(call.args[0]), size_of(call.args[1])
    far = torch.where(grid.amax(-1) < 2.0**20, 0.0, math.inf).unsqueeze(1)
    return [(x.amax((2, 3), keepdim=True) * ROOM + far).expand(call.expected[0].shape)]


def squares(largest: torch.Tensor) -> torch.Tensor:
    return largest.square() * ROOM


def reach_of_distance(call: Call) -> list[Any] | None:
    largest = [squares(size_of(t)).sum(-1) for t in call.tensors]
    if call.kernel.name.startswith("aten::_pdist"):
        i, j = torch.triu_indices(len(largest[0]), len(largest[0]), 1)
        return [largest[0][i].maximum(largest[0][j])]
    reach = [largest[0].unsqueeze(-1).maximum(largest[1].unsqueeze(-2))]
    if all(bool(t.isfinite().all()) for t in call.tensors):
        return reach
    return beside_padding(call, reach)


def of_channels(call: Call) -> torch.Tensor:
    """The largest number that a channel meets, whether in the batch or among its parameters."""
    channels = call.args[0].shape[1]
    largest = size_of(call.args[0]).transpose(0, 1).reshape(channels, -1).amax(1)
    for tensor in call.tensors[1:]:
        largest = largest.maximum(size_of(tensor))
    return largest


def reach_of_batch_norm(call: Call) -> list[Any] | None:
    x, largest = call.args[0], squares(of_channels(call))
    image = largest.reshape([1, -1] + [1] * (x.dim() - 2)).expand(x.shape)
    shaped = {tuple(x.shape): image, tuple(largest.shape): largest}
    return [shaped.get(tuple(e.shape), torch.zeros(e.shape)) for e in call.expected]


def reach_of_group_norm(call: Call) -> list[Any] | None:
    x, groups = call.args[0], call.args[6]
    if x.numel() == 0:
        return None
    moments = squares(size_of(x).reshape(len(x), groups, -1).amax(2))
    image = moments.repeat_interleave(x.shape[1] // groups, 1)
    for tensor in call.tensors[1:]:
        image = image + torch.where(tensor.isfinite(), 0.0, math.inf)
    image = image.reshape([*image.shape] + [1] * (x.dim() - 2)).expand(x.shape)
    return [image, moments, moments]


def reach_of_layer_norm(call: Call) -> list[Any] | None:
    x, last = call.args[0], len(call.args[1])
    if x.numel() == 0:
        return None
    moments = squares(size_of(x).amax(tuple(range(x.dim() - last, x.dim())), keepdim=True))
    image = moments.expand(x.shape)
    for tensor in call.tensors[1:]:
        image = image + torch.where(tensor.isfinite(), 0.0, math.inf)
    return [image, moments, moments]


def reach_of_variance(call: Call) -> list[Any] | None:
    x, dims = size_of(call.args[0]), call.args[1]
    if x.numel() == 0:
        return None
    dims = tuple(dims) if dims else tuple(range(x.dim()))
    keep = call.args[-1]
    return [squares(x.amax(dims, keepdim=keep) if x.dim() else x)] * len(call.expected)


def reach_of_product(call: Call) -> list[Any] | None:
    args = [a.double().abs() if isinstance(a, torch.Tensor) else a for a in call.args]
    low = exact(call.kernel, [args[0].clamp(max=1), *args[1:]], call.dtype)
    high = exact(call.kernel, [args[0].clamp(min=1), *args[1:]], call.dtype)
    if low is None or high is None:
        return None
    tiny = torch.finfo(call.expected[0].dtype).tiny
    return [torch.where(low[0] < tiny, high[0] * 2**60, high[0])]


REACHES: tuple[tuple[str, Callable[[Call], list[Any] | None]], ...] = (
    (LINEAR, reach_of_sums),
    (r"aten::_fft_\w+\.out", reach_of_transform),
    (r"aten::grid_sampler_2d\.out", reach_of_grid),
    (r"aten::_[cp]dist_forward\.out", reach_of_distance),
    (r"aten::_native_batch_norm_legit\w*\.\w+", reach_of_batch_norm),
    (r"aten::native_group_norm\.out", reach_of_group_norm),
    (r"aten::native_layer_norm\.out", reach_of_layer_norm),
    (r"aten::(std|var)(_mean)?\.\w+", reach_of_variance),
    (r"aten::prod\.\w+", reach_of_product),
)
REACHED = "|".join(f"({kernels})" for kernels, _ in REACHES)


def real(value: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def same_but(call: Call, excused: Sequence[torch.Tensor]) -> bool:
    """Whether results are the same except for the elements that are excused."""
    truth = exact(call.kernel, call.args, call.dtype) or [None] * len(excused)
    for got, want, free, best in zip(call.results, call.expected, excused, truth, strict=True):
        if got.shape != want.shape:
            return False
        a, b = real(got), real(want)
        free = free.unsqueeze(-1) if got.is_complex() else free
        best = real(best) if isinstance(best, torch.Tensor) else None
        if best is not None:
            best = torch.where(free.expand(b.shape), b.to(best.dtype), best)
        if difference(torch.where(free, b, a), b, best) is not None:
            return False
    return True


def most(dtype: torch.dtype) -> float:
    return float(torch.finfo(dtype).max) if dtype.is_floating_point else 2.0**63


def reach_of(call: Call) -> list[Any] | None:
    found = next(f for kernels, f in REACHES if re.fullmatch(kernels, call.kernel.name))(call)
    shapes = [t.shape for t in call.expected]
    if found is None or [t.shape for t in call.results] != shapes:
        return None
    return found if [t.shape for t in found] == shapes else None


def infinite_terms(call: Call) -> bool:
    """What differs has a term that is infinite, no number, or so large that sums overflow."""
    reach = reach_of(call)
    if reach is None:
        return False
    excused = []
    for got, want, size in zip(call.results, call.expected, reach, strict=True):
        near = near_its_terms(call, got, want, size)
        excused.append(near | ~(size * ROOM < most(real(want).dtype)))
    return same_but(call, excused)


def near_its_terms(call: Call, got: Any, want: Any, size: torch.Tensor) -> torch.Tensor:
    """Which elements differ by steps of the sum of their terms' magnitudes at most."""
    dtype = real(want).dtype
    if call.kernel.name == "aten::_cdist_forward.out" and call.args[2] == 2.0:
        off = (got.double().square() - want.double().square()).abs()
        return off <= UNITS[dtype] * size
    if re.fullmatch(MEANS, call.kernel.name):
        if want is call.expected[0] and not call.kernel.name.startswith(("aten::var", "aten::std")):
            return shifted(call, got, want)
        off = (got.double() - want.double()).abs()
        added = call.args[0].numel() * UNITS[dtype] * want.double().abs()
        return (off <= 16 * UNITS[dtype] * (size / ROOM).sqrt()) | (off <= added)
    if not re.fullmatch(CANCELS, call.kernel.name) or not dtype.is_floating_point:
        return torch.zeros(want.shape, dtype=torch.bool)
    narrow = re.fullmatch(ADDED_NARROW, call.kernel.name) or dtype == torch.float64
    steps = UNITS[dtype if narrow else torch.float32]
    steps *= 4 if call.kernel.name.startswith("aten::_fft") else 1
    off = real(got).double() - real(want).double()
    off = off.abs().amax(-1) if want.is_complex() else off.abs()
    return off <= steps * size


def shifted(call: Call, got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """Which elements differ by a few steps of the terms of scale times x plus a shift."""
    if call.kernel.name.startswith(("aten::var", "aten::std")):
        return torch.zeros(want.shape, dtype=torch.bool)
    size = 1.0
    for tensor in call.tensors:
        finite = size_of(tensor).nan_to_num(0, 0, 0).flatten()
        size *= max(1.0, float(finite.max())) if finite.numel() else 1.0
    dtype = torch.float64 if want.dtype == torch.float64 else torch.float32
    room = 8 * UNITS[dtype] * size / max(call.args[-1], 1e-12) ** 0.5
    return (got.double() - want.double()).abs() <= min(room, most(dtype))


def shifts_cancel(call: Call) -> bool:
    """What differs is a few steps of the terms, not of their sum."""
    return same_but(
        call, [shifted(call, *pair) for pair in zip(call.results, call.expected, strict=True)]
    )


def without_terms(call: Call) -> bool:
    """Elements differ that have no terms; the kernel gives zero."""
    reach = reach_of(call)
    if reach is None:
        return False
    excused = [(size == 0) & (got == 0) for got, size in zip(call.results, reach, strict=True)]
    return same_but(call, excused)


def cancelling_terms(call: Call) -> bool:
    """What differs does so by steps of the sum of its terms' magnitudes."""
    reach = reach_of(call)
    if reach is None:
        return False
    parts = zip(call.results, call.expected, reach, strict=True)
    return same_but(call, [near_its_terms(call, *part) for part in parts])
