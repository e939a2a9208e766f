# SPDX-License-Identifier: BSD-3-Clause
"""The copying form of every view operator, and which of them only reshape or permute."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

aten = torch.ops.aten

COPIES = {
    aten._unsafe_view.default: aten.view_copy.default,
    aten._reshape_alias.default: aten.view_copy.default,
    aten.alias.default: aten.alias_copy.default,
    aten.as_strided.default: aten.as_strided_copy.default,
    aten.detach.default: aten.detach_copy.default,
    aten.diagonal.default: aten.diagonal_copy.default,
    aten.expand.default: aten.expand_copy.default,
    aten.narrow.default: aten.narrow_copy.default,
    aten.permute.default: aten.permute_copy.default,
    aten.reshape.default: aten.view_copy.default,
    aten.select.int: aten.select_copy.int,
    aten.slice.Tensor: aten.slice_copy.Tensor,
    aten.split.Tensor: aten.split_copy.Tensor,
    aten.split_with_sizes.default: aten.split_with_sizes_copy.default,
    aten.squeeze.default: aten.squeeze_copy.default,
    aten.squeeze.dim: aten.squeeze_copy.dim,
    aten.squeeze.dims: aten.squeeze_copy.dims,
    aten.t.default: aten.t_copy.default,
    aten.transpose.int: aten.transpose_copy.int,
    aten.unbind.int: aten.unbind_copy.int,
    aten.unfold.default: aten.unfold_copy.default,
    aten.unsqueeze.default: aten.unsqueeze_copy.default,
    aten.view.default: aten.view_copy.default,
    aten.view_as_real.default: aten.view_as_real_copy.default,
}

VIEW_OF = {copy: view for view, copy in COPIES.items()}

VIEW = aten.view_copy.default
PERMUTE = aten.permute_copy.default
VIEWS = (
    VIEW,
    aten.squeeze_copy.default,
    aten.squeeze_copy.dim,
    aten.squeeze_copy.dims,
    aten.unsqueeze_copy.default,
)
PERMUTATIONS = (PERMUTE, aten.transpose_copy.int, aten.t_copy.default)


def permutation(node: Node) -> list[int]:
    """Return the order of dimensions that a permuting node asks for, without negative numbers."""
    rank = node.meta["val"].dim()
    args: Any = node.args
    if node.target is PERMUTE:
        return [dim % rank for dim in args[1]]
    order = list(range(rank))
    if rank > 1:
        a, b = (args[1] % rank, args[2] % rank) if len(args) > 2 else (0, 1)
        order[a], order[b] = order[b], order[a]
    return order
