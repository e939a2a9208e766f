# SPDX-License-Identifier: BSD-3-Clause
"""``add.Scalar(x, 2.5)`` -> ``add.Scalar(x.to(float32), 2.5)`` where a target's kernel needs it.

ExecuTorch's kernels add no number of another kind than their tensor's, and take int64 indices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from etx_schema.targets.takes import misfit_of
from torch import Tensor
from torch.fx import Graph, Node

from etx_exir.ir.dim_order import TO_COPY
from etx_exir.ir.out_variants import out_variant
from etx_exir.passes.base import NodePass

aten = torch.ops.aten
CAST: dict[Any, tuple[int, torch.dtype | None]] = {  # which argument, to what: None is the result's
    aten.add.Scalar: (0, None),
    aten.sub.Scalar: (0, None),
    aten.gather.default: (2, torch.int64),
    aten.scatter.src: (2, torch.int64),
    aten.scatter.value: (2, torch.int64),
    aten.scatter_add.default: (2, torch.int64),
}
NUMBERS = {bool: "Bool", int: "Int", float: "Double"}


class CastArguments(NodePass):
    """Convert an argument before a call, which the kernel does not; `rows` are of the target."""

    targets = tuple(CAST)

    def __init__(self, rows: Mapping[str, Any]) -> None:
        self.rows = rows

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Return the call with its arguments cast."""
        if not self.wants(node):
            return None
        place, dtype = CAST[node.target]
        cast = graph.call_function(
            TO_COPY, (node.args[place],), {"dtype": dtype or node.meta["val"].dtype}
        )
        node.update_arg(place, cast)
        return node

    def wants(self, node: Node) -> bool:
        """Whether an argument of `node` is of another dtype than the kernel takes."""
        if node.op != "call_function" or node.target not in CAST:
            return False
        place, dtype = CAST[node.target]
        source = node.args[place]
        if not isinstance(source, Node):
            return False
        differs = source.meta["val"].dtype != (dtype or node.meta["val"].dtype)
        return differs and not self._takes(node)

    def _takes(self, node: Node) -> bool:
        variant = out_variant(node.target)
        row = None if variant is None else self.rows.get(variant.key)
        if variant is None or row is None:
            return True
        given = [
            node.args[i] if i < len(node.args) else node.kwargs.get(argument.name, argument.default)
            for i, argument in enumerate(variant.arguments)
        ]
        kinds = [*map(_kind, given), _kind(node)]
        return misfit_of(row, kinds, next(iter(kinds[-1]), None)) is None


def _kind(value: Any) -> list[str]:
    known = value.meta["val"] if isinstance(value, Node) else value
    if isinstance(known, Tensor):
        return [str(known.dtype).removeprefix("torch.")]
    return [NUMBERS[type(known)]] if type(known) in NUMBERS else []
