# SPDX-License-Identifier: BSD-3-Clause
"""Facts about operators: their arguments, which are pointwise, the table of those that move."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from etx_exir.ir.dim_order import CLONE, TO_COPY

aten = torch.ops.aten

TENSORS = ("Tensor", "Optional[Tensor]")


class Moves(Enum):
    """Where the elements of a view lie in its argument, and so which bytes the two can share."""

    SAME = "the argument itself"
    RESHAPE = "all elements in their order, under other sizes"
    EXPAND = "elements repeated; all bytes where none is"
    PERMUTE = "dimensions in another order; all bytes where only sizes of one move"
    SELECT = "one index of a dimension; a piece of the bytes where that is the outermost one"
    SLICE = "a range of a dimension; a piece of the bytes where that is the outermost one"
    SPLIT = "ranges of a dimension, a result each"
    UNBIND = "the indices of a dimension, a result each"
    OTHER = "elsewhere"


@dataclass(frozen=True)
class View:
    """The copying form of view operators, the first of which has its arguments.

    Those after it are decomposed into it; where `is_decomposed`, the first is into another row's.
    """

    copy: OpOverload
    moves: Moves
    views: tuple[OpOverload, ...] = ()
    is_decomposed: bool = False


VIEW = aten.view_copy.default
EXPAND = aten.expand_copy.default
PERMUTE = aten.permute_copy.default
SELECT = aten.select_copy.int
SLICE = aten.slice_copy.Tensor
AS_PARTS = aten.view_as_real_copy.default
AS_COMPLEX = aten.view_as_complex_copy.default
SPLIT = aten.split_copy.Tensor
SPLIT_WITH_SIZES = aten.split_with_sizes_copy.default
SQUEEZE = aten.squeeze_copy.dims
UNBIND = aten.unbind_copy.int
UNSQUEEZE = aten.unsqueeze_copy.default

TABLE = (
    View(aten.alias_copy.default, Moves.SAME, (aten.alias.default,)),
    View(aten.detach_copy.default, Moves.SAME, (aten.detach.default,), True),
    View(aten.lift_fresh_copy.default, Moves.SAME),
    View(
        VIEW,
        Moves.RESHAPE,
        (
            aten.view.default,
            aten._unsafe_view.default,
            aten._reshape_alias.default,
            aten.reshape.default,
        ),
    ),
    View(aten._reshape_copy.default, Moves.RESHAPE),
    View(aten.squeeze_copy.default, Moves.RESHAPE, (aten.squeeze.default,)),
    View(aten.squeeze_copy.dim, Moves.RESHAPE, (aten.squeeze.dim,), True),
    View(SQUEEZE, Moves.RESHAPE, (aten.squeeze.dims,)),
    View(UNSQUEEZE, Moves.RESHAPE, (aten.unsqueeze.default,)),
    View(EXPAND, Moves.EXPAND, (aten.expand.default,)),
    View(PERMUTE, Moves.PERMUTE, (aten.permute.default,)),
    View(aten.transpose_copy.int, Moves.PERMUTE, (aten.transpose.int,), True),
    View(aten.t_copy.default, Moves.PERMUTE, (aten.t.default,), True),
    View(SELECT, Moves.SELECT, (aten.select.int,)),
    View(SLICE, Moves.SLICE, (aten.slice.Tensor,)),
    View(SPLIT, Moves.SPLIT, (aten.split.Tensor,)),
    View(SPLIT_WITH_SIZES, Moves.SPLIT, (aten.split_with_sizes.default,)),
    View(UNBIND, Moves.UNBIND, (aten.unbind.int,)),
    View(aten.as_strided_copy.default, Moves.OTHER, (aten.as_strided.default,)),
    View(aten.diagonal_copy.default, Moves.OTHER, (aten.diagonal.default,)),
    View(aten.narrow_copy.default, Moves.OTHER, (aten.narrow.default,), True),
    View(aten.unfold_copy.default, Moves.OTHER, (aten.unfold.default,)),
    View(AS_PARTS, Moves.OTHER, (aten.view_as_real.default,)),
    View(AS_COMPLEX, Moves.OTHER, (aten.view_as_complex.default,)),
)
"""Every operator that only moves elements, once."""

COPY_OF = {view: row.copy for row in TABLE for view in row.views}
VIEW_OF = {row.copy: row.views[0] for row in TABLE if row.views}
MOVES_OF: dict[Any, Moves] = {op: row.moves for row in TABLE for op in (row.copy, *row.views)}


def copies(*moves: Moves) -> tuple[OpOverload, ...]:
    """Return the copying forms that move elements in one of these ways."""
    return tuple(row.copy for row in TABLE if row.moves in moves)


RESHAPES = copies(Moves.RESHAPE)
PERMUTATIONS = copies(Moves.PERMUTE)


def arguments(node: Node) -> dict[str, Any]:
    """Return the arguments of a call by their names in its schema, in that order, defaults too."""
    target: Any = node.target
    specs = target._schema.arguments
    given = dict(zip((spec.name for spec in specs), node.args, strict=False)) | node.kwargs
    return {spec.name: given.get(spec.name, spec.default_value) for spec in specs}


def permutation(node: Node) -> list[int]:
    """Return the order of dimensions that a permuting node asks for, without negative numbers."""
    rank = node.meta["val"].dim()
    args: Any = node.args
    if len(args) == 2:
        return [dim % rank for dim in args[1]]
    order = list(range(rank))
    if rank > 1:
        a, b = (args[1] % rank, args[2] % rank) if len(args) > 2 else (0, 1)
        order[a], order[b] = order[b], order[a]
    return order


def is_pointwise(target: Any) -> bool:
    """Whether each element of the result depends on the same element of each tensor argument.

    The arguments are broadcast to the shape of the result. What ATen tags so, and our copies.
    """
    if not isinstance(target, OpOverload):
        return False
    if torch.Tag.nondeterministic_seeded in target.tags:
        return False
    return torch.Tag.pointwise in target.tags or target in (CLONE, TO_COPY)


def broadcasts(target: Any) -> bool:
    """Whether `target` is pointwise and takes several tensors."""
    if not is_pointwise(target):
        return False
    return sum(str(argument.type) in TENSORS for argument in target._schema.arguments) > 1
