# SPDX-License-Identifier: BSD-3-Clause
"""Orders of dimensions: entry i of an order is the dimension of the program's tensor that is the
i-th one of the delegate's value. Dimensions of size one may lie anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Order = tuple[int, ...]
Size = Any
"""An int, or a torch.SymInt."""
LARGEST = 1 << 31

NHWC: Order = (0, 2, 3, 1)
NLC: Order = (0, 2, 1)


def plain(rank: int) -> Order:
    """Return the program's own order."""
    return tuple(range(rank))


def is_one(size: Size) -> bool:
    """Tell whether a size is one for certain."""
    return isinstance(size, int) and size == 1


def ordered(sizes: Sequence[Size], order: Order) -> list[Size]:
    """Return the sizes of a value in `order`."""
    return [sizes[dim] for dim in order]


def same_bytes(sizes: Sequence[Size], first: Order, second: Order) -> bool:
    """Tell whether both orders put the elements in the same sequence."""
    return _significant(sizes, first) == _significant(sizes, second)


def _significant(sizes: Sequence[Size], order: Order) -> list[int]:
    return [dim for dim in order if not is_one(sizes[dim])]


def reshaped(sizes: Sequence[Size], order: Order, new: Sequence[Size]) -> Order | None:
    """Return the order that the bytes of a value have under `new` sizes, None where they have none.

    That is, `view(x, new)` moves nothing if `x` is stored in `order` and its result in the order
    that is returned.
    """
    if same_bytes(sizes, order, plain(len(order))):
        return plain(len(new))
    if not all(isinstance(size, int) for size in (*sizes, *new)):
        return None
    groups = _groups(sizes, new)
    place = {dim: i for i, dim in enumerate(_significant(sizes, order))}
    for inner, _ in groups:
        first = place[inner[0]] if inner else 0
        if [place[dim] for dim in inner] != list(range(first, first + len(inner))):
            return None
    groups.sort(key=lambda group: place[group[0][0]] if group[0] else -1)
    result = [dim for _, outer in groups for dim in outer]
    return tuple([dim for dim in range(len(new)) if dim not in result] + result)


def _groups(sizes: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return dimensions of both sides, no ones among them, in the smallest sets of equal size."""
    left = [dim for dim, size in enumerate(sizes) if size != 1]
    right = [dim for dim, size in enumerate(new) if size != 1]
    groups = []
    while left and right:
        inner, outer = [left.pop(0)], [right.pop(0)]
        a, b = sizes[inner[0]], new[outer[0]]
        while a != b:
            if a < b:
                inner.append(left.pop(0))
                a *= sizes[inner[-1]]
            else:
                outer.append(right.pop(0))
                b *= new[outer[-1]]
        groups.append((inner, outer))
    return groups


def hint(size: Size) -> int:
    """Return a size, of a symbolic one the example's.

    Of one that is known only when the program runs, as how many boxes stay, it is the largest, or 1
    where there is none.
    """
    if isinstance(size, int):
        return size
    example = size.node.hint
    if example is not None:
        return int(example)
    most = size.node.shape_env.bound_sympy(size.node.expr).upper
    return int(most) if most <= LARGEST else 1
