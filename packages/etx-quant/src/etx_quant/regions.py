# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a model under ``torch.no_grad()`` or a disabled autocast, which export as calls."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

__all__ = ["inline_regions"]

_GRAD = torch.ops.higher_order.wrap_with_set_grad_enabled
_AUTOCAST = torch.ops.higher_order.wrap_with_autocast


def inline_regions(model: GraphModule, *, of_gradients: bool) -> None:
    """Put the operators of such parts in the place of their calls, where quantizers see them.

    Only training asks whether there are gradients: it keeps those parts as they are. An
    autocast that is enabled changes dtypes, and stays.
    """
    while calls := [node for node in model.graph.nodes if _body(node, of_gradients) is not None]:
        for call in calls:
            _inline(model, call, of_gradients)
    model.graph.lint()
    model.recompile()


def _body(node: Node, of_gradients: bool) -> int | None:
    """Return at which argument of a call the body is, None where it is not to be inlined."""
    if node.op != "call_function":
        return None
    if node.target is _GRAD and of_gradients:
        return 1
    return 4 if node.target is _AUTOCAST and not node.args[2] else None


def _inline(model: GraphModule, call: Node, of_gradients: bool) -> None:
    place = _body(call, of_gradients)
    assert place is not None
    held = call.args[place]
    assert isinstance(held, Node)
    body = model.get_submodule(str(held.target))
    assert isinstance(body, GraphModule)
    inputs = [node for node in body.graph.nodes if node.op == "placeholder"]
    made: dict[Node, Any] = dict(zip(inputs, call.args[place + 1 :], strict=True))
    results: Any = ()
    with model.graph.inserting_before(call):
        for node in body.graph.nodes:
            if node.op == "output":
                results = map_arg(node.args[0], made.__getitem__)
            elif node.op != "placeholder":
                made[node] = model.graph.node_copy(node, made.__getitem__)
            if node.op == "get_attr":
                made[node].target = _adopt(model, body, str(node.target))
    for user in list(call.users):
        assert user.target is operator.getitem
        user.replace_all_uses_with(results[user.args[1]])
        model.graph.erase_node(user)
    model.graph.erase_node(call)
    if not held.users:
        model.graph.erase_node(held)


def _adopt(model: GraphModule, body: GraphModule, target: str) -> str:
    """Give ``model`` what ``body`` has at ``target``; return its name there."""
    path, _, leaf = target.rpartition(".")
    value = getattr(body.get_submodule(path), leaf)
    names = (f"inlined_{number}" for number in range(len(list(model.graph.nodes))))
    name = next(name for name in names if not hasattr(model, name))
    setattr(model, name, value)
    return name
