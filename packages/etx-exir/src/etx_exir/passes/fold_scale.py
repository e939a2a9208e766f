# SPDX-License-Identifier: BSD-3-Clause
"""``s * linear(x, w, b)`` -> ``linear(x, s * w, s * b)``, also through views in between.

Not where a product overflows or vanishes: eager's result would be finite, or not zero.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Graph, Node

from etx_exir.passes.base import NodePass
from etx_exir.passes.merge_views import PERMUTATIONS, VIEWS

aten = torch.ops.aten

LINEAR = aten.linear.default
BETWEEN = frozenset({*VIEWS, *PERMUTATIONS})


class FoldScale(NodePass):
    """Scale weights ahead of time, where nothing else reads the unscaled result."""

    targets = (aten.mul.Scalar,)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        source, factor = node.args[:2]
        if not isinstance(factor, int | float) or not isinstance(source, Node):
            return None
        layer = source
        while layer.target in BETWEEN and len(layer.users) == 1:
            layer = layer.all_input_nodes[0]
        if layer.target is not LINEAR or len(layer.users) != 1:
            return None
        held = [arg for arg in layer.args[1:] if isinstance(arg, Node)]
        tensors = [self.constant(arg) for arg in held]
        if any(t is None or not t.is_floating_point() for t in tensors):
            return None
        if any(len(arg.users) != 1 for arg in held):
            return None
        with torch.no_grad():
            products = [(t, t * factor) for t in tensors if t is not None]
        if not all(_same_kind(t, product) for t, product in products):
            return None
        scaled = [
            self.constants.add(product, f"{self.constants.name(arg)}_scaled", self.mode)
            for arg, (_, product) in zip(held, products, strict=True)
        ]
        layer.args = (layer.args[0], *scaled)
        return source


def _same_kind(before: Tensor, after: Tensor) -> bool:
    """Whether all is finite and exactly what was zero is zero."""
    return bool(after.isfinite().all()) and torch.equal(before == 0, after == 0)
