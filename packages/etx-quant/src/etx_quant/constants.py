# SPDX-License-Identifier: BSD-3-Clause
"""Constants of an exported graph, and those that are added."""

from __future__ import annotations

import operator

from torch import Tensor, nn
from torch.fx import GraphModule, Node

__all__ = ["add_constant", "tensor_of"]


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
