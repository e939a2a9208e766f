# SPDX-License-Identifier: BSD-3-Clause
"""Where elements come from: chains of operators that only move them, run on numbers of elements."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from etx_exir.ir.ops import PERMUTATIONS, RESHAPES, SELECT, SLICE, VIEW, VIEW_OF, Moves, copies

PARTS = frozenset({SELECT, SLICE, operator.getitem})
SPLITS = frozenset(copies(Moves.SPLIT, Moves.UNBIND))
MOVES = frozenset({*RESHAPES, *PERMUTATIONS, *PARTS, *SPLITS})
LIMIT = 1 << 22
"""Elements up to which it is worth the time to follow every one."""


def is_static(node: Node) -> bool:
    """Whether `node` is a tensor of known shape that is small enough to be traced."""
    value = node.meta.get("val")
    if not isinstance(value, Tensor) or any(not isinstance(size, int) for size in value.shape):
        return False
    return value.numel() <= LIMIT


def chain_above(node: Node) -> tuple[Node, list[Node]]:
    """Return the value that `node` is moved from, and the nodes from there down to `node`."""
    chain: list[Node] = []
    while node.target in MOVES and len(node.all_input_nodes) == 1:
        chain.append(node)
        node = node.all_input_nodes[0]
    return node, chain[::-1]


def move(value: Any, chain: Sequence[Node]) -> Any:
    """Apply the moves of `chain` to `value`, which has the shape of what they start from."""
    for node in chain:
        target: Any = node.target
        function: Any = torch.reshape if target is VIEW else VIEW_OF.get(target, target)
        value = function(value, *node.args[1:], **node.kwargs)
    return value


def numbered(node: Node) -> Tensor:
    """Return the elements of `node` as numbers from 0."""
    shape = node.meta["val"].shape
    return torch.arange(shape.numel(), dtype=torch.int32).reshape(shape)
