# SPDX-License-Identifier: BSD-3-Clause
"""A program whose delegates also return what they compute on the way."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from etx_exir import to_edge_transform_and_lower
from etx_exir.delegation.backend import Partitioner
from etx_exir.delegation.partition import delegate
from etx_exir.ir.equal_values import note_of
from etx_exir.lower.copy_program import copy_program
from etx_schema import PteFile
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, OutputSpec, TensorArgument
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

__all__ = ["between_integers", "compile_tapped"]

QUANTIZE, DEQUANTIZE = "quantized_decomposed.quantize", "quantized_decomposed.dequantize"


def compile_tapped(
    program: ExportedProgram | Mapping[str, ExportedProgram],
    partitioner: Sequence[Partitioner],
    config: Any = None,
    only: Collection[str] | None = None,
) -> PteFile:
    """Compile as `to_edge_transform_and_lower` does, with every value of the model an output.

    Partitioners see a program that returns all that equals a value of the exported one, so that
    delegates return it too; the outputs of the program itself come first. Between integers, what is
    computed in floating point is not returned: a backend that has integer kernels would not use
    them. `only` are the names of values to which to keep.
    """

    def tap_and_delegate(
        edge: Mapping[str, ExportedProgram], chosen: Mapping[str, Partitioner | None]
    ) -> dict[str, ExportedProgram]:
        return delegate({name: _tapped(each, only) for name, each in edge.items()}, chosen)

    edge = to_edge_transform_and_lower(
        program, partitioner=list(partitioner), delegator=tap_and_delegate
    )
    return edge.to_executorch(config).pte_file


def _tapped(program: ExportedProgram, only: Collection[str] | None) -> ExportedProgram:
    result = copy_program(program)
    output = result.graph.output_node()
    returned: Any = output.args[0]
    left_out = between_integers(result.graph)
    left_out.update(node for node in returned if isinstance(node, Node))
    added = [n for n in result.graph.nodes if _is_value(n, only) and n not in left_out]
    output.args = ((*returned, *added),)
    output.meta["val"] = tuple(_fake(item) for item in (*returned, *added))
    result.graph_signature.output_specs.extend(
        OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name=node.name), None) for node in added
    )
    result.graph_module.recompile()
    entry, *rest = result.module_call_graph
    assert entry.signature is not None
    count = len(result.graph_signature.user_outputs)
    flat = pytree.tree_structure(tuple(range(count)))
    result._module_call_graph = [
        replace(entry, signature=replace(entry.signature, out_spec=flat)),
        *rest,
    ]
    return result


def _is_value(node: Node, only: Collection[str] | None) -> bool:
    note, value = note_of(node), node.meta.get("val")
    if node.op != "call_function" or not isinstance(value, Tensor) or note is None:
        return False
    name = note if isinstance(note, str) else note[0]
    return only is None or name in only


def between_integers(graph: Graph) -> set[Node]:
    """Return the nodes that dequantize, and those of whose value only quantizing operators come."""
    found: set[Node] = set()
    for node in reversed(graph.nodes):
        if DEQUANTIZE in str(node.target):
            found.add(node)
        elif QUANTIZE not in str(node.target) and node.users:
            taken = (user in found or QUANTIZE in str(user.target) for user in node.users)
            found.update((node,) if all(taken) else ())
    return found


def _fake(item: Any) -> Any:
    return item.meta.get("val") if isinstance(item, Node) else item
