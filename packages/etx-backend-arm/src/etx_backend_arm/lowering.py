# SPDX-License-Identifier: BSD-3-Clause
"""Lower partitions to TOSA: needs the extra ``[aot]``."""

from __future__ import annotations

from typing import Any

from etx_exir import BackendDetails, CompileSpec, PreprocessResult
from torch.export import ExportedProgram
from torch.fx import Node

from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.economy import simplify
from etx_backend_arm.nodes import Profile, form_of
from etx_backend_arm.nodes.table import Form
from etx_backend_arm.quantized import DEQUANTIZE, OF_CHANNELS, QUANTIZE, Step, find_step, split_of
from etx_backend_arm.tosa import Graph
from etx_backend_arm.values import DTYPES, Values

__all__ = ["TOSABackend", "lower_node", "lower_program", "lower_to_tosa"]

CONVERSIONS = (QUANTIZE, DEQUANTIZE, OF_CHANNELS)


def lower_to_tosa(program: ExportedProgram, narrow_weights: bool = False) -> bytes:
    """Return the TOSA 1.0 file of a partition; inputs and outputs keep the program's layout."""
    graph = lower_program(program, narrow_weights=narrow_weights, wide_sums=True)
    return graph.serialize()


def lower_program(
    program: ExportedProgram,
    narrow_tables: bool = False,
    narrow_weights: bool = False,
    wide_sums: bool = False,
) -> Graph:
    """Return the TOSA graph of a partition.

    ``narrow_tables``: only tables of 8 bits are used, as targets without EXT-INT16 have them.
    ``narrow_weights``: those of 4 bits are stored so, which is EXT-INT4. ``wide_sums``: of two sums
    in a row the first is not rounded in between, which takes an operator less and more memory.
    """
    graph = Graph()
    values = Values(graph, program, narrow_tables, narrow_weights, wide_sums)
    for node in program.graph.nodes:
        if node.op == "placeholder" and values.parameter(node) is None:
            shape, dtype = values.shape(node), DTYPES[node.meta["val"].dtype]
            values.define(node, graph.input(node.name, shape, dtype))
        elif node.op == "call_function" and node not in values.done:
            graph.maker = node.name
            _call(values, node)
        elif node.op == "output":
            results: Any = node.args[0]
            for result in results:
                graph.output(values.get(result))
    simplify(graph)
    return graph


def lower_node(program: ExportedProgram, node: Node, narrow_tables: bool = False) -> Graph:
    """Return the graph of one quantized operator, with what it reads as inputs."""
    graph = Graph()
    values = Values(graph, program, narrow_tables)
    found = find_step(node, values.parameter)
    result = found.result if isinstance(found, Step) else node
    inputs = dict.fromkeys(map(_integers, (split_of(node) or node).all_input_nodes))
    for source in inputs:
        if values.parameter(source) is None and source.meta["val"].dtype in DTYPES:
            shape, dtype = values.shape(source), DTYPES[source.meta["val"].dtype]
            values.define(source, graph.input(source.name, shape, dtype))
    _call(values, node)
    graph.output(values.get(result, values.layout(result)))
    return graph


def _integers(node: Node) -> Node:
    """Return the node of the integers behind a dequantized one, or the node."""
    source = node.args[0] if node.target in (DEQUANTIZE, OF_CHANNELS) else node
    return source if isinstance(source, Node) else node


def _call(values: Values, node: Node) -> None:
    given = node.all_input_nodes[0].target if node.all_input_nodes else None
    if node.target in CONVERSIONS and not (node.target is QUANTIZE and given is DEQUANTIZE):
        return
    if any(_is_picked(user, node, values) for user in node.users):
        return
    form = form_of(node, values.parameter, Profile.INT)
    if isinstance(form, str):
        form = form_of(node, values.parameter, Profile.FP)
    assert isinstance(form, Form), form
    form.emit(values, node)


def _is_picked(user: Node, node: Node, values: Values) -> bool:
    """Tell whether a result is picked between integers: what picks it is lowered."""
    return split_of(user) is node and isinstance(find_step(user, values.parameter), Step)


class TOSABackend(BackendDetails):
    """Lowers a partition to a TOSA 1.0 file."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Return the TOSA flatbuffer of ``edge_program``."""
        spec = TosaCompileSpec.from_list(compile_specs)
        return PreprocessResult(processed_bytes=lower_to_tosa(edge_program, spec.has("int4")))
