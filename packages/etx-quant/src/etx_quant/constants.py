# SPDX-License-Identifier: BSD-3-Clause
"""Constants of an exported graph, and those that are added."""

from __future__ import annotations

import operator

import torch
from torch import Tensor, nn
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import GraphModule, Node, map_arg

__all__ = ["add_constant", "computed", "constants", "tensor_of"]


def tensor_of(model: GraphModule, node: Node) -> Tensor:
    """Return the tensor of the model that a get_attr node reads."""
    value: Tensor = operator.attrgetter(str(node.target))(model)
    return value


def add_constant(model: GraphModule, name: str, constant: Tensor, like: Tensor) -> Node:
    """Make a constant a parameter under a free name; return a node before all others.

    ``like`` is a fake tensor of the graph, whose dtype the constant gets.
    """
    free = next(n for i in range(10**6) if not hasattr(model, n := f"{name}_{i}"))
    parameter = nn.Parameter(constant.to(like.dtype), requires_grad=False)
    model.register_parameter(free, parameter)
    with model.graph.inserting_before(next(iter(model.graph.nodes))):
        node = model.graph.get_attr(free)
    node.meta["val"] = like.fake_mode.from_tensor(  # type: ignore[attr-defined]
        parameter, static_shapes=True
    )
    return node


def constants(model: GraphModule) -> set[Node]:
    """Return the nodes whose values are the same in each call, and that nothing writes to."""
    nodes = [*model.graph.nodes]
    changed = {str(n.target) for n in _ancestors(_written(nodes)) if n.op == "get_attr"}
    found: set[Node] = set()
    for node in nodes:
        is_held = node.op == "get_attr" and str(node.target) not in changed
        if isinstance(node.meta.get("val"), Tensor) and (is_held or _is_pure(node, found)):
            found.add(node)
    return found - _ancestors(_written(nodes))


def computed(model: GraphModule, node: Node) -> Tensor:
    """Return the value of a node that depends on nothing but constants."""
    values: dict[Node, Tensor] = {}
    needed = _ancestors([node])
    with torch.no_grad():
        for each in model.graph.nodes:
            if each not in needed:
                continue
            if each.op == "get_attr":
                values[each] = tensor_of(model, each)
            else:
                args, kwargs = map_arg((each.args, each.kwargs), values.__getitem__)
                values[each] = each.target(*args, **kwargs)
            if each is node:
                break
    return values[node].detach().contiguous()


def _is_pure(node: Node, constant: set[Node]) -> bool:
    op = node.target
    return (
        isinstance(op, OpOverload)
        and not _is_mutable(op)
        and torch.Tag.nondeterministic_seeded not in op.tags
        and constant.issuperset(node.all_input_nodes)
    )


def _written(nodes: list[Node]) -> list[Node]:
    """Return what operators that write into arguments, and control flow, read."""
    return [
        read
        for node in nodes
        if node.op == "call_function"
        if isinstance(node.target, HigherOrderOperator) or _is_mutable(node.target)
        for read in node.all_input_nodes
    ]


def _is_mutable(op: object) -> bool:
    return isinstance(op, OpOverload) and op._schema.is_mutable


def _ancestors(nodes: list[Node]) -> set[Node]:
    found: set[Node] = set()
    left = [*nodes]
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += node.all_input_nodes
    return found
