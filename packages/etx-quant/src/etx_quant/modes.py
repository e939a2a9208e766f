# SPDX-License-Identifier: BSD-3-Clause
"""What operators of a graph do in training, switched off and on again where they stand.

torchao replaces them by patterns, which lose momentum and epsilon of norms and the share of a
dropout, know two kinds of it, and are exported at each call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

__all__ = ["set_training"]

IN_EVALUATION = {"dropout_p": 0.0, "train": False, "training": False, "use_input_stats": False}
"""Arguments of operators with what they are in evaluation."""
MODE = "etx_quant_training"
"""The key of what a node's arguments are in training."""


def set_training(model: nn.Module, mode: bool) -> bool:
    """Let the graph of ``model`` train as it was captured, or not; tell whether it changed.

    A norm without running statistics has those of its input in either case.
    """
    changed = False
    for graph in [each for each in model.modules() if isinstance(each, GraphModule)]:
        touched = [node for node in graph.graph.nodes if _switch(node, mode)]
        if touched:
            graph.recompile()
            changed = True
    return changed


def _switch(node: Node, mode: bool) -> bool:
    changed = False
    for place, name in _switches(node.target):
        is_listed = place < len(node.args)
        given: Any = node.args[place] if is_listed else node.kwargs.get(name)
        held: dict[str, Any] = node.meta.setdefault(MODE, {})
        off = IN_EVALUATION[name]
        value = held.get(name, given) if mode else off
        if given is None or given == value or _has_no_statistics(node):
            continue
        if not mode:
            held[name] = given
        if is_listed:
            node.update_arg(place, value)
        else:
            node.update_kwarg(name, value)
        changed = True
    return changed


def _switches(op: object) -> Iterator[tuple[int, str]]:
    if isinstance(op, OpOverload):
        for place, argument in enumerate(op._schema.arguments):
            if argument.name in IN_EVALUATION:
                yield place, argument.name


def _has_no_statistics(node: Node) -> bool:
    names = [argument.name for argument in node.target._schema.arguments]  # type: ignore[union-attr]
    if "running_mean" not in names:
        return False
    place = names.index("running_mean")
    return place >= len(node.args) or node.args[place] is None
