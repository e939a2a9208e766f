# SPDX-License-Identifier: BSD-3-Clause
"""Memory formats as permutations of dimensions, and the three operators that set them.

``dim_order[k]`` is the dimension at depth ``k`` of memory, outermost first: ``(0, 1, 2, 3)`` is
contiguous, ``(0, 2, 3, 1)`` is channels last. ``None`` keeps the order of the input. In the graph
the operators have a namespace of their own, since ExecuTorch defines that of the file as its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import (
    is_channels_last_contiguous_or_false,
    is_contiguous_or_false,
)

from etx_exir.ir.layout import by_strides

__all__ = [
    "CLONE",
    "EMPTY",
    "FILE_NAMESPACE",
    "NAMESPACE",
    "TO_COPY",
    "dim_order_of",
    "dim_order_of_format",
    "strides_of",
]

NAMESPACE = "etx_dim_order"
FILE_NAMESPACE = "dim_order_ops"
_LIBRARY: Any = torch.library.Library(NAMESPACE, "DEF")  # type: ignore[no-untyped-call]
_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def dim_order_of(tensor: Tensor) -> tuple[int, ...]:
    """Return the order of dimensions in memory; contiguous wins where strides leave a choice."""
    order = tuple(range(tensor.dim()))
    if is_contiguous_or_false(tensor):
        return order
    if is_channels_last_contiguous_or_false(tensor):
        return dim_order_of_format(torch.channels_last, tensor.dim())
    return by_strides(tensor)


def dim_order_of_format(memory_format: torch.memory_format | None, rank: int) -> tuple[int, ...]:
    """Return the permutation that `memory_format` means for a tensor of `rank` dimensions."""
    if memory_format is torch.channels_last or memory_format is torch.channels_last_3d:
        return (0, *range(2, rank), 1)
    return tuple(range(rank))


def strides_of(sizes: Sequence[int], dim_order: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense tensor whose dimensions lie in memory as `dim_order` says."""
    strides = [1] * len(sizes)
    step: Any = 1
    for dim in reversed(dim_order):
        strides[dim] = step
        step = step * sizes[dim]
    return tuple(strides)


def _like(tensor: Tensor, dtype: torch.dtype | None, dim_order: Sequence[int] | None) -> Tensor:
    order = dim_order_of(tensor) if dim_order is None else dim_order
    return torch.empty_strided(
        tensor.shape,
        strides_of(tensor.shape, order),
        dtype=dtype or tensor.dtype,
        device=tensor.device,
    )


def _to_copy(
    self: Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    dim_order: Sequence[int] | None = None,
) -> Tensor:
    return _like(self, dtype, dim_order).copy_(self)


def _to_copy_out(
    self: Tensor, *, non_blocking: bool = False, dim_order: Any = None, out: Tensor
) -> Tensor:
    if out.shape != self.shape:
        out.resize_(self.shape)
    return out.copy_(self)


def _clone(
    self: Tensor, *, non_blocking: bool = False, dim_order: Sequence[int] | None = None
) -> Tensor:
    return _like(self, None, dim_order).copy_(self)


def _empty(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    dim_order: Sequence[int] | None = None,
) -> Tensor:
    order = range(len(size)) if dim_order is None else dim_order
    return torch.empty_strided(
        tuple(size), strides_of(size, tuple(order)), dtype=dtype, device=device
    )


def _empty_out(size: Sequence[int], *, dim_order: Any = None, out: Tensor) -> Tensor:
    return out


def _define(name: str, arguments: str, out_arguments: str, functional: Any, out: Any) -> Any:
    _LIBRARY.define(f"{name}({arguments}) -> Tensor")
    _LIBRARY.define(f"{name}.out({out_arguments}, Tensor(a!) out) -> Tensor(a!)")
    _LIBRARY.impl(name, functional, "CompositeExplicitAutograd")
    _LIBRARY.impl(f"{name}.out", out, "CompositeExplicitAutograd")
    return getattr(getattr(torch.ops, NAMESPACE), name).default


_TAIL = "bool non_blocking=False, int[]? dim_order=None"
TO_COPY = _define(
    "_to_dim_order_copy",
    f"Tensor self, *, {_OPTIONS}, {_TAIL}",
    f"Tensor self, *, {_TAIL}",
    _to_copy,
    _to_copy_out,
)
CLONE = _define(
    "_clone_dim_order",
    f"Tensor self, *, {_TAIL}",
    f"Tensor self, *, {_TAIL}",
    _clone,
    _to_copy_out,
)
EMPTY = _define(
    "_empty_dim_order",
    f"SymInt[] size, *, {_OPTIONS}, int[]? dim_order=None",
    "SymInt[] size, *, int[]? dim_order=None",
    _empty,
    _empty_out,
)
