# SPDX-License-Identifier: BSD-3-Clause
"""From an exported program to the Edge dialect: decompose, then the passes in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch._ops import OpOverload
from torch.export import ExportedProgram

from etx_exir.decompose import decompose
from etx_exir.passes import PIPELINE, Pass

__all__ = ["Observer", "lower", "run_passes"]

Observer = Callable[[str, ExportedProgram, bool], None]
"""Called after each step with its name, the program and whether the step changed it."""


def run_passes(
    program: ExportedProgram, passes: Iterable[Pass], observer: Observer | None = None
) -> bool:
    """Run `passes` on `program` in place; return whether any changed it."""
    changed = False
    for item in passes:
        did = item.run(program)
        changed |= did
        if observer is not None:
            observer(item.name, program, did)
    return changed


def lower(
    program: ExportedProgram,
    preserved: Iterable[OpOverload] = (),
    observer: Observer | None = None,
) -> ExportedProgram:
    """Return `program` in the Edge dialect; the given program stays as it is."""
    edge = decompose(program, preserved)
    if observer is not None:
        observer("decompose", edge, True)
    run_passes(edge, PIPELINE, observer)
    return edge
