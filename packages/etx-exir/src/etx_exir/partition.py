# SPDX-License-Identifier: BSD-3-Clause
"""Delegation: tagged nodes move into programs of their own, which a backend lowers to blobs."""

from __future__ import annotations

import heapq
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from etx_schema import CompileSpec
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

from etx_exir.backend import (
    DELEGATION_TAG,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    backend_of,
)
from etx_exir.constants import Constants
from etx_exir.delegate import CALL_DELEGATE, LoweredBackendModule
from etx_exir.errors import BackendError, where
from etx_exir.passes.base import graph_modules, name_outputs
from etx_exir.passes.remove_dead_code import RemoveDeadCode
from etx_exir.transform import copy_program

__all__ = ["delegate", "to_backend"]


def to_backend(
    backend_id: str, program: ExportedProgram, compile_specs: Sequence[CompileSpec] = ()
) -> LoweredBackendModule:
    """Lower all of `program` with one backend."""
    spec = DelegationSpec(backend_id, list(compile_specs))
    return _preprocess(copy_program(program), spec)


def delegate(program: ExportedProgram, partitioner: Partitioner) -> ExportedProgram:
    """Return a copy of `program` in which delegates stand for the nodes `partitioner` tagged."""
    result = partitioner.partition(copy_program(program))
    if not isinstance(result, PartitionResult):
        raise BackendError(
            f"{type(partitioner).__name__}.partition returned {type(result).__name__}; "
            "expected a PartitionResult"
        )
    tagged = result.tagged_exported_program
    for module in graph_modules(tagged.graph_module):
        for tag, nodes in _by_tag(module.graph, result.partition_tags).items():
            _replace(tagged, module, nodes, result.partition_tags[tag], tag)
    name_outputs(tagged)
    RemoveDeadCode().run(tagged)
    return tagged


def _by_tag(graph: Graph, tags: dict[str, DelegationSpec]) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in graph.nodes:
        tag = node.meta.get(DELEGATION_TAG)
        if tag is None or node.op in ("placeholder", "output"):
            continue
        if tag not in tags:
            raise BackendError(f"{where(node)}: tag {tag!r} is not in partition_tags")
        found.setdefault(tag, []).append(node)
    return found


def _replace(
    program: ExportedProgram,
    module: GraphModule,
    nodes: list[Node],
    spec: DelegationSpec,
    tag: str,
) -> None:
    inside = set(nodes)
    constants = Constants(program)
    read = dict.fromkeys(arg for node in nodes for arg in node.all_input_nodes)
    held = [node for node in read if constants.get(node) is not None]
    modules = [node for node in read if node.op == "get_attr" and node not in inside]
    inputs = [n for n in read if n not in inside and n not in held and n not in modules]
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    _check_convex(inside, inputs, tag)
    part = _program(program, module, [*modules, *nodes], held, inputs, outputs)
    lowered = _preprocess(part, spec)
    name = _attribute(module, f"lowered_module_{len(module._modules)}")
    setattr(module, name, lowered)
    graph = module.graph
    with graph.inserting_before(nodes[-1].next):
        attribute = graph.get_attr(name)
        call = graph.call_function(CALL_DELEGATE, (attribute, *inputs))
        call.meta["val"] = [node.meta["val"] for node in outputs]
        for index, node in enumerate(outputs):
            item = graph.call_function(operator.getitem, (call, index))
            item.meta = {k: v for k, v in node.meta.items() if k != DELEGATION_TAG}
            node.replace_all_uses_with(item, delete_user_cb=lambda user: user not in inside)
    for node in reversed(nodes):
        graph.erase_node(node)
    _sort(graph)
    graph.lint()
    module.recompile()


def _attribute(module: GraphModule, name: str) -> str:
    while hasattr(module, name):
        name += "_"
    return name


def _check_convex(inside: set[Node], inputs: Iterable[Node], tag: str) -> None:
    """Refuse a partition that needs a value which depends on the partition itself."""
    seen: set[Node] = set()
    pending = list(inputs)
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        for arg in node.all_input_nodes:
            if arg in inside:
                raise BackendError(
                    f"partition {tag!r} needs {where(node)}, which itself needs {arg.name} of "
                    "the same partition; split the partition there"
                )
            pending.append(arg)


def _program(
    source: ExportedProgram,
    module: GraphModule,
    nodes: Sequence[Node],
    constants: Sequence[Node],
    inputs: Sequence[Node],
    outputs: Sequence[Node],
) -> ExportedProgram:
    """Build the program of a partition: constants first, then inputs; outputs as a tuple."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in (*constants, *inputs):
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = {k: v for k, v in node.meta.items() if k != DELEGATION_TAG}
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
        copies[node].meta.pop(DELEGATION_TAG, None)
    graph.output(tuple(copies[node] for node in outputs)).meta["val"] = tuple(
        node.meta["val"] for node in outputs
    )
    held = {spec.arg.name: spec for spec in source.graph_signature.input_specs}
    specs = [
        InputSpec(
            held[node.name].kind,
            TensorArgument(name=copies[node].name),
            held[node.name].target,
            held[node.name].persistent,
        )
        for node in constants
    ]
    specs += [InputSpec(InputKind.USER_INPUT, _argument(copies[node]), None) for node in inputs]
    signature = ExportGraphSignature(
        specs, [OutputSpec(OutputKind.USER_OUTPUT, _argument(copies[n]), None) for n in outputs]
    )
    targets = {held[node.name].target for node in constants}
    children: dict[str, Any] = {
        str(node.target): getattr(module, str(node.target))
        for node in nodes
        if node.op == "get_attr"
    }
    return ExportedProgram(
        root=children,
        graph=graph,
        graph_signature=signature,
        state_dict={k: v for k, v in source.state_dict.items() if k in targets},
        range_constraints=dict(source.range_constraints),
        module_call_graph=[ModuleCallEntry("", _call_signature(len(inputs), len(outputs)))],
        constants={k: v for k, v in source.constants.items() if k in targets},
    )


def _argument(node: Node) -> TensorArgument | SymIntArgument:
    value = node.meta["val"]
    kind = TensorArgument if isinstance(value, Tensor) else SymIntArgument
    return kind(name=node.name)


def _call_signature(inputs: int, outputs: int) -> ModuleCallSignature:
    spec = pytree.tree_flatten((tuple(range(inputs)), {}))[1]
    return ModuleCallSignature(
        inputs=[],
        outputs=[],
        in_spec=spec,
        out_spec=pytree.tree_flatten(tuple(range(outputs)))[1],
    )


def _preprocess(part: ExportedProgram, spec: DelegationSpec) -> LoweredBackendModule:
    result = backend_of(spec.backend_id).preprocess(part, list(spec.compile_specs))
    blob = getattr(result, "processed_bytes", None)
    if not isinstance(blob, bytes):
        raise BackendError(
            f"{spec.backend_id}.preprocess returned {type(result).__name__}; expected a "
            "PreprocessResult with processed_bytes of type bytes"
        )
    return LoweredBackendModule(
        part,
        spec.backend_id,
        blob,
        spec.compile_specs,
        result.data_store_output,
        result.debug_handle_map,
    )


def _sort(graph: Graph) -> None:
    """Put every node behind its arguments; the order stays as it was where it can."""
    position = {node: index for index, node in enumerate(graph.nodes)}
    needs = {node: len(node.all_input_nodes) for node in position}
    ready = [(position[node], node) for node, count in needs.items() if not count]
    order: list[Node] = []
    while ready:
        _, node = heapq.heappop(ready)
        order.append(node)
        for user in node.users:
            needs[user] -= 1
            if not needs[user]:
                heapq.heappush(ready, (position[user], user))
    anchor = graph._root
    for node in order:
        anchor.append(node)
        anchor = node
