# SPDX-License-Identifier: BSD-3-Clause
"""Weights that a model computes: constants, as a quantizer expects them.

``layer(x, f(c))`` -> ``layer(x, w)`` with ``w = f(c)``; ``matmul(x, w)`` -> ``linear(x, w.T)``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from etx_quant.constants import add_constant, computed, constants

__all__ = ["fold_weights"]

aten = torch.ops.aten
LINEAR = aten.linear.default
PRODUCTS = aten.matmul.default, aten.mm.default, aten.addmm.default
NAMES = "weight", "bias", "params"


def fold_weights(model: GraphModule) -> None:
    """Compute what weighted operators read of constants; make products by constants linear.

    Norms, masks and low ranks of weights, and their transposes, are such computations.
    """
    constant = constants(model)
    products = [node for node in model.graph.nodes if node.target in PRODUCTS]
    for node in products:
        _as_linear(node, constant)
    made: dict[Node, Node] = {}
    for node in [*model.graph.nodes]:
        for argument in _weights(node):
            if argument in constant and argument.op != "get_attr":
                if argument not in made:
                    value = computed(model, argument)
                    made[argument] = add_constant(
                        model, f"{node.name}_weight", value, argument.meta["val"]
                    )
                node.replace_input_with(argument, made[argument])
    model.graph.eliminate_dead_code()
    model.recompile()


def _weights(node: Node) -> list[Node]:
    """Return what a layer reads beside activations."""
    op, read = node.target, []
    if isinstance(op, OpOverload):
        for place, argument in enumerate(op._schema.arguments):
            held: Any = [*node.args[place : place + 1], node.kwargs.get(argument.name)]
            if argument.name in NAMES:
                read += held
    return [each for each in pytree.tree_leaves(read) if isinstance(each, Node)]


def _as_linear(node: Node, constant: set[Node]) -> None:
    """Make the product of an activation and a constant matrix a linear layer."""
    has_bias = node.target is aten.addmm.default
    bias: Any = node.args[0] if has_bias else None
    x, weight = node.args[1:3] if has_bias else node.args[:2]
    assert isinstance(x, Node)
    assert isinstance(weight, Node)
    ranks = x.meta["val"].dim(), weight.meta["val"].dim()
    is_row = bias is None or (bias in constant and bias.meta["val"].shape == (_columns(weight),))
    if node.kwargs or x in constant or weight not in constant or not is_row:
        return
    if ranks[0] < 2 or ranks[1] != 2:
        return
    with node.graph.inserting_before(node):
        turned = node.graph.call_function(aten.t.default, (weight,))
        turned.meta["val"] = weight.meta["val"].t()
        constant.add(turned)
        linear = node.graph.call_function(LINEAR, (x, turned, *([bias] if has_bias else [])))
    linear.meta = dict(node.meta)
    node.replace_all_uses_with(linear)


def _columns(weight: Node) -> int:
    columns: int = weight.meta["val"].shape[-1]
    return columns
