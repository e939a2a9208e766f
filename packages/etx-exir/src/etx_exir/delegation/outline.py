# SPDX-License-Identifier: BSD-3-Clause
"""Outlining: a set of nodes as a program of its own, and the call that takes their place."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

from etx_exir.delegation.backend import DELEGATION_TAG, DelegationSpec
from etx_exir.errors import BackendError, where
from etx_exir.ir.constants import Constants
from etx_exir.ir.delegate_call import CALL_DELEGATE, LoweredBackendModule
from etx_exir.lower.copy_program import copy_program

__all__ = ["Part", "mutations", "outline"]

_KINDS: dict[Any, Any] = {bool: SymBoolArgument, float: SymFloatArgument}


@dataclass
class Part:
    """A partition: its program, the first of its nodes for messages, and its call."""

    program: ExportedProgram
    spec: DelegationSpec
    tag: str
    where: str
    lowered: LoweredBackendModule


@dataclass
class _Boundary:
    """The nodes of a partition and what crosses its border."""

    nodes: list[Node]
    modules: list[Node]
    constants: list[Node]
    state: dict[Node, Node]
    inputs: list[Node]
    outputs: list[Node]


def outline(
    program: ExportedProgram,
    module: GraphModule,
    nodes: list[Node],
    spec: DelegationSpec,
    tag: str,
) -> Part:
    """Move `nodes` of `module` into a program of their own; a call takes their place."""
    border = _boundary(program, module, nodes, tag)
    _check_convex(set(nodes), border.inputs, tag)
    part = _program(program, module, border)
    place = where(nodes[0])
    lowered = LoweredBackendModule(part, spec.backend_id, b"", spec.compile_specs)
    _give_up_state(program, border.state)
    _insert_call(module, border, lowered)
    return Part(part, spec, tag, place, lowered)


def flat_copy(program: ExportedProgram) -> ExportedProgram:
    """Return a copy that takes its user inputs one by one and returns a tuple of its outputs."""
    result = copy_program(program)
    signature = result.graph_signature
    calls = _call_signature(len(signature.user_inputs), len(signature.user_outputs))
    result._module_call_graph = [ModuleCallEntry("", calls)]
    if program.example_inputs is not None:
        result._example_inputs = (tuple(pytree.tree_leaves(program.example_inputs)), {})
    return result


def mutations(program: ExportedProgram) -> dict[str, Node]:
    """Return, by placeholder of a mutable buffer, the node of its new value."""
    signature = program.graph_signature
    names = {spec.target: spec.arg.name for spec in signature.input_specs if spec.target}
    outputs: Any = program.graph.output_node().args[0]
    return {
        names[spec.target]: node
        for spec, node in zip(signature.output_specs, outputs, strict=True)
        if spec.kind is OutputKind.BUFFER_MUTATION and spec.target in names
    }


def _boundary(
    program: ExportedProgram, module: GraphModule, nodes: list[Node], tag: str
) -> _Boundary:
    inside = set(nodes)
    read = dict.fromkeys(arg for node in nodes for arg in node.all_input_nodes)
    around = [node for node in read if node not in inside]
    modules = [node for node in around if node.op == "get_attr"]
    tagged = {n for n in around if n.op == "placeholder" and n.meta.get(DELEGATION_TAG) == tag}
    constants = Constants(program)
    root = module is program.graph_module
    # What a branch or body captures has no tag: each partition in it has its own copy.
    own = tagged if root else {node for node in around if node.op == "placeholder"}
    stored = [node for node in around if node in own and constants.get(node) is not None]
    state: dict[Node, Node] = {}
    if root and tagged:
        state = _state(program, tagged, inside, tag)
    taken = {*modules, *stored, *state}
    returned = _returned(program, module, set(state) if root else set())
    outputs = [
        node
        for node in nodes
        if node in returned or any(u not in inside and u.op != "output" for u in node.users)
    ]
    if not outputs:
        raise BackendError(
            f"partition {tag!r} ({where(nodes[0])}) returns nothing that is used; "
            "leave it outside, or delegate what reads its state as well"
        )
    return _Boundary(
        nodes, modules, stored, state, [node for node in around if node not in taken], outputs
    )


def _state(
    program: ExportedProgram, tagged: set[Node], inside: set[Node], tag: str
) -> dict[Node, Node]:
    """Return the buffers that the partition owns, each with the node of its new value."""
    changed = mutations(program)
    state = {}
    for node in tagged:
        if node.name not in changed:
            continue
        others = [user for user in node.users if user not in inside]
        if changed[node.name] not in inside or others:
            raise BackendError(
                f"buffer {node.name} is tagged {tag!r}, but nodes without this tag use it, "
                "too; leave the buffer untagged, or delegate its other uses as well"
            )
        state[node] = changed[node.name]
    return state


def _returned(program: ExportedProgram, module: GraphModule, state: set[Node]) -> set[Node]:
    """Return the nodes that the graph returns, except new values of `state`."""
    output = module.graph.output_node()
    if not state:
        return set(output.all_input_nodes)
    owned = {node.name for node in state}
    names = {s.arg.name: s.target for s in program.graph_signature.input_specs if s.target}
    targets = {names[name] for name in owned}
    specs = program.graph_signature.output_specs
    values: Any = output.args[0]
    return {
        value
        for spec, value in zip(specs, values, strict=True)
        if isinstance(value, Node)
        and not (spec.kind is OutputKind.BUFFER_MUTATION and spec.target in targets)
    }


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


def _program(source: ExportedProgram, module: GraphModule, border: _Boundary) -> ExportedProgram:
    """Build the program of a partition: constants, state, inputs; new state, then outputs."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    placeholders = (*border.constants, *border.state, *border.inputs)
    for node in placeholders:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = {k: v for k, v in node.meta.items() if k != DELEGATION_TAG}
    for node in (*border.modules, *border.nodes):
        copies[node] = graph.node_copy(node, copies.__getitem__)
        copies[node].meta.pop(DELEGATION_TAG, None)
    returned = [*border.state.values(), *border.outputs]
    result = graph.output(tuple(copies[node] for node in returned))
    result.meta["val"] = tuple(node.meta["val"] for node in returned)
    signature = _signature(source, border, copies.__getitem__)
    targets = {spec.target for spec in signature.input_specs if spec.target}
    children = {
        str(node.target): getattr(module, str(node.target))
        for node in (*border.modules, *border.nodes)
        if node.op == "get_attr"
    }
    calls = _call_signature(len(border.inputs), len(border.outputs))
    return ExportedProgram(
        root=children,
        graph=graph,
        graph_signature=signature,
        state_dict={k: v for k, v in source.state_dict.items() if k in targets},
        range_constraints=dict(source.range_constraints),
        module_call_graph=[ModuleCallEntry("", calls)],
        constants={k: v for k, v in source.constants.items() if k in targets},
    )


def _signature(
    source: ExportedProgram, border: _Boundary, copy: Callable[[Node], Node]
) -> ExportGraphSignature:
    named = {spec.arg.name: spec for spec in source.graph_signature.input_specs}
    constants = Constants(source)
    specs = {
        node: named[constants.origin(node).name] for node in (*border.constants, *border.state)
    }
    inputs = [
        InputSpec(spec.kind, TensorArgument(name=copy(node).name), spec.target, spec.persistent)
        for node, spec in specs.items()
    ]
    inputs += [InputSpec(InputKind.USER_INPUT, _argument(copy(n)), None) for n in border.inputs]
    outputs = [
        OutputSpec(OutputKind.BUFFER_MUTATION, _argument(copy(new)), specs[buffer].target)
        for buffer, new in border.state.items()
    ]
    outputs += [
        OutputSpec(OutputKind.USER_OUTPUT, _argument(copy(n)), None) for n in border.outputs
    ]
    return ExportGraphSignature(inputs, outputs)


def _argument(node: Node) -> Any:
    value = node.meta["val"]
    if isinstance(value, Tensor):
        return TensorArgument(name=node.name)
    kind = getattr(getattr(value, "node", None), "pytype", int)
    return _KINDS.get(kind, SymIntArgument)(name=node.name)


def _call_signature(inputs: int, outputs: int) -> ModuleCallSignature:
    return ModuleCallSignature(
        inputs=[],
        outputs=[],
        in_spec=pytree.tree_flatten((tuple(range(inputs)), {}))[1],
        out_spec=pytree.tree_flatten(tuple(range(outputs)))[1],
    )


def _give_up_state(program: ExportedProgram, state: dict[Node, Node]) -> None:
    """Take the buffers that a delegate owns out of the program's signature and outputs."""
    if not state:
        return
    signature = program.graph_signature
    names = {node.name for node in state}
    targets = {s.target for s in signature.input_specs if s.arg.name in names}
    output = program.graph.output_node()
    values: Any = output.args[0]
    kept = [
        (spec, value)
        for spec, value in zip(signature.output_specs, values, strict=True)
        if not (spec.kind is OutputKind.BUFFER_MUTATION and spec.target in targets)
    ]
    signature.output_specs[:] = [spec for spec, _ in kept]
    output.args = (tuple(value for _, value in kept),)
    signature.input_specs[:] = [s for s in signature.input_specs if s.arg.name not in names]
    for target in targets:
        program.state_dict.pop(target, None)
        program.constants.pop(target, None)


def _insert_call(module: GraphModule, border: _Boundary, lowered: LoweredBackendModule) -> None:
    name = f"lowered_module_{len(module._modules)}"
    while hasattr(module, name):
        name += "_"
    setattr(module, name, lowered)
    graph, inside = module.graph, set(border.nodes)
    with graph.inserting_before(border.nodes[-1].next):
        attribute = graph.get_attr(name)
        call = graph.call_function(CALL_DELEGATE, (attribute, *border.inputs))
        call.meta["val"] = [node.meta["val"] for node in border.outputs]
        for index, node in enumerate(border.outputs):
            item = graph.call_function(operator.getitem, (call, index))
            item.meta = {k: v for k, v in node.meta.items() if k != DELEGATION_TAG}
            node.replace_all_uses_with(item, delete_user_cb=lambda user: user not in inside)
    unused = [node for node in border.modules if all(user in inside for user in node.users)]
    for node in (*reversed(border.nodes), *border.state, *unused):
        graph.erase_node(node)
