# SPDX-License-Identifier: BSD-3-Clause
"""Names that torch's generated code cannot spell, such as `class.0.weight`, put away meanwhile."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from etx_exir.lower.copy_program import copy_program

__all__ = ["plain", "restore"]


def plain(program: ExportedProgram) -> tuple[ExportedProgram, dict[str, str]]:
    """Return `program`, or a copy with other names where keywords are parts of them.

    The second is the old name of each new one, for `restore`.
    """
    taken = {*program.state_dict, *program.constants}
    renamed: dict[str, str] = {}
    for name in sorted(taken):
        if any(map(keyword.iskeyword, name.split("."))):
            fresh = _spelled(name)
            while fresh in taken:
                fresh += "_"
            taken.add(fresh)
            renamed[name] = fresh
    odd = any(not _is_spelled(name) for name in _arguments(program))
    if not renamed and not odd:
        return program, {}
    result = copy_program(program)
    _rename(result, renamed)
    if odd:
        _flatten_inputs(result)
    return result, {new: old for old, new in renamed.items()}


def restore(program: ExportedProgram, names: Mapping[str, str], source: ExportedProgram) -> None:
    """Give the tensors and inputs of `program`, which was `source`, their names back."""
    if names:
        _rename(program, names)
    program._module_call_graph = source.module_call_graph
    program._example_inputs = source.example_inputs


def _is_spelled(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name != "self"


def _arguments(program: ExportedProgram) -> list[str]:
    root = program.module_call_graph[0].signature if program.module_call_graph else None
    return [] if root is None else [*(root.forward_arg_names or ()), *_keywords(root.in_spec)]


def _keywords(spec: pytree.TreeSpec) -> list[str]:
    both = spec.num_children == 2 and spec.child(1).type is dict
    return list(spec.child(1).context) if both else []


def _flatten_inputs(program: ExportedProgram) -> None:
    """Let the inputs be positional, one a leaf."""
    entry = program.module_call_graph[0]
    assert entry.signature is not None
    count = entry.signature.in_spec.num_leaves
    flat = pytree.tree_structure((tuple(range(count)), {}))
    signature = replace(entry.signature, in_spec=flat, forward_arg_names=None)
    program._module_call_graph = [
        replace(entry, signature=signature),
        *program.module_call_graph[1:],
    ]
    if program.example_inputs is not None:
        program._example_inputs = (tuple(pytree.tree_leaves(program.example_inputs)), {})


def _spelled(name: str) -> str:
    return ".".join(f"{p}_" if keyword.iskeyword(p) else p for p in name.split("."))


def _rename(program: ExportedProgram, names: Mapping[str, str]) -> None:
    signature: Any = program.graph_signature
    for spec in (*signature.input_specs, *signature.output_specs):
        if spec.target in names:
            spec.target = names[spec.target]
    program._state_dict = {names.get(k, k): v for k, v in program.state_dict.items()}
    program._constants = {names.get(k, k): v for k, v in program.constants.items()}
