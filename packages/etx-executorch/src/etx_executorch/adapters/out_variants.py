# SPDX-License-Identifier: BSD-3-Clause
"""Graphs whose operators write into tensors that `alloc` makes."""

from __future__ import annotations

from typing import Any

import torch
from etx_exir.ir.control_flow_graphs import graph_modules
from torch._ops import OpOverload
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult
from torch.utils import _pytree as pytree

from etx_executorch.adapters.config import Always
from etx_executorch.adapters.operators import EdgeOpOverload, torch_op
from etx_executorch.adapters.specs import TensorSpec, make_spec

__all__ = ["ToOutVarPass", "alloc", "get_alloc_node"]


def alloc(spec: Any) -> Any:
    """Return memory for a tensor, `(sizes, dtype)`, or for several."""
    if isinstance(spec, list):
        return [alloc(each) for each in spec]
    sizes, dtype = spec
    return torch.empty(sizes, dtype=dtype)


class ToOutVarPass(Always):
    """Replace operators by their out variants, which write into `memory.alloc`.

    What has none among torch's operators stays. In a file ETX chooses out variants itself.
    """

    def __call__(self, graph_module: GraphModule) -> PassResult:
        """Replace the calls of a graph and those nested in it."""
        for module in graph_modules(graph_module):
            for node in list(module.graph.nodes):
                if node.op == "call_function":
                    _replace(node)
            module.recompile()
        return PassResult(graph_module, True)

    call = __call__


def _replace(node: Node) -> None:
    target: Any = torch_op(node.target)
    if not isinstance(target, OpOverload) or target._schema.is_mutable:
        return
    try:
        variant = EdgeOpOverload(target).to_out_variant()
    except RuntimeError:
        return
    known = {argument.name for argument in variant._schema.arguments}
    outs = [argument for argument in variant._schema.arguments if argument.is_out]
    specs = node.meta["spec"] if "spec" in node.meta else make_spec(node.meta["val"])
    if isinstance(outs[0].type, torch.ListType):
        given: list[Any] = [[_alloc(node, spec) for spec in specs]]
    else:
        listed = specs if isinstance(specs, (list, tuple)) else [specs]
        given = [_alloc(node, spec) for spec in listed]
    kept = {name: value for name, value in node.kwargs.items() if name in known}
    named = {out.name: value for out, value in zip(outs, given, strict=True)}
    node.target = variant
    node.kwargs = {**kept, **named}


def _alloc(node: Node, spec: TensorSpec) -> Node:
    with node.graph.inserting_before(node):
        made = node.graph.call_function(alloc, ((tuple(spec.shape), spec.scalar_type),))
    made.meta["spec"] = spec
    return made


def get_alloc_node(node: Node) -> list[Node]:
    """Return the calls of `alloc` that a call writes into."""
    given = pytree.tree_leaves(list(node.kwargs.values()))
    return [each for each in given if isinstance(each, Node) and each.target is alloc]
