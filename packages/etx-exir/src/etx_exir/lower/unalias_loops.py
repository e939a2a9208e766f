# SPDX-License-Identifier: BSD-3-Clause
"""What torch's decomposition refuses although `torch.export` gives it: aliases, vmap.

``loop(x, x)`` -> ``loop(x, clone(x))``; a vectorised map in a nested graph -> its operators;
two buffers that end with one value -> two values.
"""

from __future__ import annotations

import itertools
import operator
from typing import Any

import torch
from torch import Tensor
from torch._C import _functorch as functorch
from torch._functorch import predispatch
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Interpreter, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.fx.traceback import preserve_node_meta
from torch.utils import _pytree as pytree

from etx_exir.ir.constants import fake_mode_of
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.lower.copy_program import copy_program

__all__ = ["merges_writes", "unalias_loops", "unalias_writes"]

LOOPS = frozenset({"while_loop", "scan"})


def unalias_loops(program: ExportedProgram) -> ExportedProgram:
    """Return `program`, or a copy of it that torch's decomposition takes."""
    modules = list(graph_modules(program.graph_module))
    if not any(map(_aliased, modules)) and not any(map(_has_vmap, modules[1:])):
        return program
    result = copy_program(program)
    mode = fake_mode_of(program)
    for parent in list(graph_modules(result.graph_module)):
        for name, child in list(parent.named_children()):
            if isinstance(child, GraphModule) and _has_vmap(child):
                setattr(parent, name, _traced(child, mode))
    for module in graph_modules(result.graph_module):
        numbers: dict[Node, set[int]] = {}
        for loop, number in _aliased(module):
            numbers.setdefault(loop, set()).add(number)
        for loop, chosen in numbers.items():
            _clone_inputs(module.graph, loop, chosen)
        module.recompile()
    return result


def merges_writes(program: ExportedProgram) -> bool:
    """Return whether outputs lack their line in the signature, as torch's decomposition loses them.

    It lists writes by the value written, so that of two equal ones the later stays.
    """
    outputs: Any = program.graph.output_node().args[0]
    return len(outputs) != len(program.graph_signature.output_specs)


def unalias_writes(program: ExportedProgram) -> ExportedProgram:
    """Return a copy of `program` in which each write of a whole tensor is of a value of its own."""
    result = copy_program(program)
    graph = result.graph
    writes = graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default)
    for write in writes:
        with graph.inserting_before(write):
            write.args = (write.args[0], _clone(graph, write.args[1]), *write.args[2:])
    result.graph_module.recompile()
    return result


def _clone(graph: Graph, node: Node) -> Node:
    clone = graph.call_function(torch.ops.aten.clone.default, (node,))
    clone.meta = dict(node.meta)
    return clone


def _is_vmap(target: Any) -> bool:
    return target in (predispatch._add_batch_dim, predispatch._remove_batch_dim)


def _has_vmap(module: GraphModule) -> bool:
    return any(_is_vmap(node.target) for node in module.graph.nodes)


class _Vmap(Interpreter):
    """Run a graph from which the calls that open and close the levels of vmap are gone."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        levels = (
            [args[1 if target is predispatch._remove_batch_dim else 2]] if _is_vmap(target) else []
        )
        tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        levels += [functorch.maybe_get_level(tensor) for tensor in tensors]
        depth = max((level for level in levels if level is not None and level > 0), default=0)
        for _ in range(depth):
            functorch._vmap_increment_nesting(1, "error")
        try:
            return super().call_function(target, args, kwargs)
        finally:
            for _ in range(depth):
                functorch._vmap_decrement_nesting()


def _traced(module: GraphModule, mode: torch._subclasses.FakeTensorMode) -> GraphModule:
    values = [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]
    with mode, preserve_node_meta():
        return make_fx(_Vmap(module).run, _allow_non_fake_inputs=True)(*values)


def _aliased(module: GraphModule) -> list[tuple[Node, int]]:
    """Return the loops with the inputs, by number, that share memory with an earlier one."""
    found = []
    bases: dict[Node, Node] = {}
    for node in module.graph.nodes:
        viewed = _viewed(node)
        bases[node] = node if viewed is None else bases[viewed]
        if not isinstance(node.target, HigherOrderOperator) or node.target._name not in LOOPS:
            continue
        seen: set[Node] = set()
        for number, operand in enumerate(_inputs(node)):
            if isinstance(operand.meta.get("val"), Tensor):
                if bases[operand] in seen:
                    found.append((node, number))
                seen.add(bases[operand])
    return found


def _viewed(node: Node) -> Node | None:
    """Return the node whose memory `node` may share."""
    if node.target is operator.getitem:
        source = node.args[0]
        assert isinstance(source, Node)
        return source if isinstance(source.target, OpOverload) else None
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return None
    arguments = zip(node.target._schema.arguments, node.args, strict=False)
    shared = (value for argument, value in arguments if argument.alias_info is not None)
    return next((value for value in shared if isinstance(value, Node)), None)


def _inputs(loop: Node) -> list[Node]:
    """Return the nodes that a loop takes, one an occurrence; its graphs come first."""
    inputs: list[Node] = []
    map_arg(loop.args, inputs.append)
    return inputs


def _clone_inputs(graph: Graph, loop: Node, numbers: set[int]) -> None:
    count = itertools.count()

    def replaced(node: Node) -> Node:
        if next(count) not in numbers:
            return node
        return _clone(graph, node)

    with graph.inserting_before(loop):
        loop.args = map_arg(loop.args, replaced)
