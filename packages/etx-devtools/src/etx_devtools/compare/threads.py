# SPDX-License-Identifier: BSD-3-Clause
"""Small models in eager mode on one thread: to wake others takes longer than their operators."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils import _pytree as pytree

from etx_devtools.compare.tolerance import reduction_length

__all__ = ["enough_threads"]

LARGE = 5e9
"""Products from which on a call takes a second on one thread."""


@contextmanager
def enough_threads(program: ExportedProgram) -> Iterator[None]:
    """Let torch use as many threads as it does where `program` is large, else one."""
    before = torch.get_num_threads()
    is_large = sum(map(_products, program.graph.nodes)) >= LARGE
    torch.set_num_threads(before if is_large else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _products(node: Node) -> int:
    if node.op != "call_function":
        return 0
    leaves = [x for x in pytree.tree_leaves(node.meta.get("val")) if isinstance(x, Tensor)]
    sizes = [math.prod(map(_known, tensor.shape)) for tensor in leaves]
    return max(sizes, default=0) * reduction_length([node])


def _known(size: Any) -> int:
    """Return a size; of one that is known at run time that of the example."""
    hint = size if isinstance(size, int) else size.node.hint
    return hint if isinstance(hint, int) else 1
