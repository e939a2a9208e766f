# SPDX-License-Identifier: BSD-3-Clause
"""State of methods: what one changes is no constant in another that only reads it."""

from __future__ import annotations

from collections.abc import Iterable

from torch.export import ExportedProgram

__all__ = ["KEY", "mark_shared_state", "mutated_names", "state_names"]

KEY = "etx_state"


def mutated_names(program: ExportedProgram) -> frozenset[str]:
    """Return the names of the buffers and parameters that a functional `program` changes."""
    signature = program.graph_signature
    parameters = getattr(signature, "parameters_to_mutate", {})
    return frozenset((*signature.buffers_to_mutate.values(), *parameters.values()))


def state_names(program: ExportedProgram) -> frozenset[str]:
    """Return the names of what `program` changes, or another method of its file does."""
    marked: frozenset[str] = program.graph_module.meta.get(KEY, frozenset())
    return marked | mutated_names(program)


def mark_shared_state(programs: Iterable[ExportedProgram]) -> None:
    """Let each of the functional `programs` of a file know which of its buffers others change."""
    programs = list(programs)
    changed = frozenset[str]().union(*map(mutated_names, programs))
    for program in programs:
        held = {spec.target for spec in program.graph_signature.input_specs if spec.target}
        program.graph_module.meta[KEY] = frozenset(changed & held)
