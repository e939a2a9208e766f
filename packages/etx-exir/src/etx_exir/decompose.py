# SPDX-License-Identifier: BSD-3-Clause
"""ATen to Core ATen: torch's decompositions, but for the operators that have better kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch._ops import OpOverload
from torch.export import ExportedProgram, default_decompositions

from etx_exir.decompositions import KEPT, OURS

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
    result: ExportedProgram = program.run_decompositions(decomposition_table(preserved))
    result._state_dict = dict(result.state_dict)
    result._constants = dict(result.constants)
    return result
