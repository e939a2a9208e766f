# SPDX-License-Identifier: BSD-3-Clause
"""``f(x)`` -> the nodes of ``f``'s decomposition, for operators that no backend took."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from etx_exir.errors import LoweringError
from etx_exir.ir.stand_in import reason
from etx_exir.passes.base import NodePass


class DecomposeKept(NodePass):
    """Trace the decomposition of single nodes; `keep` says which stay as they are."""

    def __init__(
        self,
        ops: Iterable[OpOverload],
        table: Mapping[Any, Callable[..., Any]],
        keep: Callable[[Node], bool] | None = None,
    ) -> None:
        self.targets = tuple(dict.fromkeys(op for op in ops if op in table))  # type: ignore[misc]
        self.table = table
        self.keep = keep

    def rewrite(self, node: Node, graph: Graph) -> Node | tuple[Node, ...] | None:
        """Return what the decomposition of `node` computes."""
        if self.keep is not None and self.keep(node):
            return None
        leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
        inputs = [leaf for leaf in leaves if isinstance(leaf, Node)]
        function = self.table[node.target]

        def call(*values: Any) -> Any:
            given = iter(values)
            filled = [next(given) if isinstance(leaf, Node) else leaf for leaf in leaves]
            args, kwargs = pytree.tree_unflatten(filled, spec)
            result = function(*args, **kwargs)
            return tuple(result) if isinstance(result, tuple) else result  # no named tuple

        try:
            with self.mode, torch.no_grad(), _no_vendor():
                traced = make_fx(call, decomposition_table=dict(self.table))(
                    *(leaf.meta["val"] for leaf in inputs)
                )
        except Exception as error:
            raise LoweringError(reason(error)) from error
        return self._inline(traced.graph, inputs, graph)

    def _inline(
        self, source: Graph, inputs: list[Node], graph: Graph
    ) -> Node | tuple[Node, ...] | None:
        placeholders = source.find_nodes(op="placeholder")
        copies: dict[Node, Node] = dict(zip(placeholders, inputs, strict=True))
        for item in source.nodes:
            if item.op == "call_function":
                copies[item] = graph.node_copy(item, copies.__getitem__)
                copies[item].meta = {"val": item.meta["val"]}
            elif item.op == "get_attr":
                return None
        result: Any = source.output_node().args[0]
        if isinstance(result, Node):
            return copies[result]
        return tuple(copies[part] if isinstance(part, Node) else part for part in result)


@contextmanager
def _no_vendor() -> Iterator[None]:
    """Choose no decomposition to a library of the build host: of an LSTM it is mkldnn_rnn_layer."""
    was_enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(was_enabled)
