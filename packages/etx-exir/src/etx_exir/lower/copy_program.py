# SPDX-License-Identifier: BSD-3-Clause
"""Copies of programs, and the user's own passes on them."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument
from torch.fx import GraphModule

from etx_exir.errors import ConfigError
from etx_exir.ir.constants import fake_mode_of
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.mutable_state import KEY
from etx_exir.passes.base import Pass, name_outputs, propagate
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode

__all__ = ["apply_passes", "copy_program"]


def copy_program(program: ExportedProgram) -> ExportedProgram:
    """Return a copy whose graph and signature can change; tensors and delegates are shared."""
    result = copy.copy(program)
    result._graph_module = copy.deepcopy(program.graph_module)
    result._graph_signature = copy.deepcopy(program.graph_signature)
    result._state_dict = dict(program.state_dict)
    result._constants = dict(program.constants)
    _name_inputs(result)
    name_outputs(result)
    return result


def apply_passes(program: ExportedProgram, passes: Sequence[Any]) -> ExportedProgram:
    """Return a copy of `program` with `passes` applied and what they left unused removed.

    A pass is one of ours, or a callable that takes a GraphModule and returns a GraphModule, an
    object with `graph_module` (such as `PassResult`), or None when it changed it in place.
    """
    result = copy_program(program)
    for item in [passes] if isinstance(passes, Pass) or callable(passes) else passes:
        if isinstance(item, Pass):
            item.run(result)
        elif callable(item):
            _apply(item, result)
        else:
            raise ConfigError(
                f"{item!r} is not a pass: expected a subclass of etx_exir.passes.Pass or a "
                "callable that takes a GraphModule"
            )
    RemoveDeadCode().run(result)
    return result


def _apply(function: Any, program: ExportedProgram) -> None:
    returned = function(program.graph_module)
    module = getattr(returned, "graph_module", returned)
    if isinstance(module, GraphModule) and module is not program.graph_module:
        module.meta.setdefault(KEY, program.graph_module.meta.get(KEY, frozenset()))
        program._graph_module = module
        _name_inputs(program)
    _fill_values(program)
    name_outputs(program)


def _name_inputs(program: ExportedProgram) -> None:
    """Let the signature speak of the new module's nodes, which keep their order."""
    signature = program.graph_signature
    placeholders = program.graph.find_nodes(op="placeholder")
    for spec, node in zip(signature.input_specs, placeholders, strict=True):
        if not isinstance(spec.arg, ConstantArgument):
            spec.arg = dataclasses.replace(spec.arg, name=node.name)


def _fill_values(program: ExportedProgram) -> None:
    mode = fake_mode_of(program)
    for module in graph_modules(program.graph_module):
        for node in module.graph.nodes:
            if node.op == "call_function" and "val" not in node.meta:
                propagate(node, mode)
        module.graph.lint()
        module.recompile()
