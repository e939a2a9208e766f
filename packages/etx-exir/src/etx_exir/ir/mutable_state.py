# SPDX-License-Identifier: BSD-3-Clause
"""State: what a method overwrites when it ends, and what one method changes of another's."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import Node

from etx_exir.ir.ops import Moves, copies

__all__ = [
    "KEEPS_ARGUMENTS",
    "KEY",
    "MUTATION",
    "SHARED",
    "is_state",
    "mark_shared",
    "mutated_names",
    "state_names",
]

KEY = "etx_state"
SHARED = "etx_shared"
OTHERS = "etx_others"
"""How many other methods the file has."""
KEEPS_ARGUMENTS = "etx_keeps_arguments"
"""Marks a call whose result is not to take the memory of an argument."""

_DATA = frozenset(
    getattr(OutputKind, name)
    for name in ("BUFFER_MUTATION", "PARAMETER_MUTATION")
    if hasattr(OutputKind, name)
)
MUTATION = _DATA | {OutputKind.USER_INPUT_MUTATION}

VIEWS = copies(Moves.SAME, Moves.RESHAPE, Moves.EXPAND)


def _written(program: ExportedProgram, kinds: frozenset[OutputKind]) -> frozenset[str]:
    """Return what is written to; the dicts of the signature lose one of two equal values."""
    specs = program.graph_signature.output_specs
    return frozenset(str(spec.target) for spec in specs if spec.kind in kinds)


def mutated_names(program: ExportedProgram) -> frozenset[str]:
    """Return the names of the buffers and parameters that a functional `program` changes."""
    return _written(program, _DATA)


def state_names(program: ExportedProgram) -> frozenset[str]:
    """Return the names of what `program` changes, or another method of its file does."""
    marked: frozenset[str] = program.graph_module.meta.get(KEY, frozenset())
    return marked | mutated_names(program)


def mark_shared(programs: Iterable[ExportedProgram]) -> None:
    """Let each of the functional `programs` of a file know what others change, and what they hold.

    The latter as memory: `SHARED` is a set of addresses.
    """
    programs = list(programs)
    changed = frozenset[str]().union(*map(mutated_names, programs))
    addresses = [_addresses(program) for program in programs]
    for i, program in enumerate(programs):
        inputs = {spec.target for spec in program.graph_signature.input_specs if spec.target}
        program.graph_module.meta[KEY] = frozenset(changed & inputs)
        others = frozenset[int]().union(*addresses[:i], *addresses[i + 1 :])
        program.graph_module.meta[SHARED] = addresses[i] & others
        program.graph_module.meta[OTHERS] = len(programs) - 1


def _addresses(program: ExportedProgram) -> frozenset[int]:
    tensors = (*program.state_dict.values(), *program.constants.values())
    return frozenset(t.data_ptr() for t in tensors if isinstance(t, Tensor) and t.numel())


def is_state(node: Node, program: ExportedProgram) -> bool:
    """Whether `node` is state or a view of it: what returns it in place of a copy returns what
    is written later."""
    while node.op == "call_function" and node.target in VIEWS:
        node = node.all_input_nodes[0]
    if node.op != "placeholder":
        return False
    written = _written(program, MUTATION)
    names = {
        spec.arg.name
        for spec in program.graph_signature.input_specs
        if spec.target in written or spec.arg.name in written
    }
    return node.name in names
