# SPDX-License-Identifier: BSD-3-Clause
"""ATen to Core ATen: torch's decompositions, but for the operators that have better kernels."""

from __future__ import annotations

import gc
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram, default_decompositions
from torch.fx import Node

from etx_exir.decompositions import KEPT, OURS
from etx_exir.separate import separate
from etx_exir.transform import copy_program

__all__ = ["decompose", "decomposition_table"]


def decomposition_table(preserved: Iterable[OpOverload] = ()) -> dict[Any, Callable[..., Any]]:
    """Return the table from ATen to Core ATen without the operators that stay whole."""
    table: dict[Any, Callable[..., Any]] = default_decompositions()
    table.update(OURS)
    for op in (*KEPT, *preserved):
        table.pop(op, None)
    return table


def decompose(program: ExportedProgram, preserved: Iterable[OpOverload] = ()) -> ExportedProgram:
    """Return `program` in functional Core ATen; the given program stays as it is."""
    whole = frozenset((*KEPT, *preserved))
    if all(_is_final(node, whole) for node in program.graph.nodes):
        return copy_program(program)
    with _no_collection(), warnings.catch_warnings():
        # torch copies the structures of inputs, whose leaves warn of their own class.
        warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)
        table = decomposition_table(preserved)
        result: ExportedProgram = separate(program).run_decompositions(table)
    result._state_dict = dict(result.state_dict)
    result._constants = dict(result.constants)
    return result


@contextmanager
def _no_collection() -> Iterator[None]:
    """Hold back the garbage collector, which walks all nodes again and again while they grow."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _is_final(node: Node, whole: frozenset[Any]) -> bool:
    """Tell whether torch's decomposition, which traces the program anew, would keep `node`."""
    if node.op != "call_function":
        return node.op in ("placeholder", "output")
    target = node.target
    if target is operator.getitem:
        return True
    if not isinstance(target, OpOverload) or target._schema.is_mutable or target in OURS:
        return False
    return torch.Tag.core in target.tags or target in whole
