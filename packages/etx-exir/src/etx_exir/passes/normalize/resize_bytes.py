# SPDX-License-Identifier: BSD-3-Clause
"""``upsample_bilinear2d(u)`` of uint8 -> ``floor(upsample_bilinear2d(u.to(float32)) + 0.5)`` as
uint8."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.ir.dim_order import TO_COPY
from etx_exir.passes.base import NodePass

aten = torch.ops.aten


class ResizeBytes(NodePass):
    """Interpolate images of bytes in float32.

    Eager's weights are of 16 bits on some processors: it may be a step away from the nearest byte.
    """

    targets = (aten.upsample_bilinear2d.vec,)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Return the resized image, rounded."""
        source: Any = node.args[0]
        if source.meta["val"].dtype != torch.uint8:
            return None
        floats = graph.call_function(TO_COPY, (source,), {"dtype": torch.float32})
        rest: Any = node.args[1:]
        resized = graph.call_function(node.target, (floats, *rest), dict(node.kwargs))  # type: ignore[arg-type]
        raised = graph.call_function(aten.add.Tensor, (resized, 0.5))
        lowered = graph.call_function(aten.floor.default, (raised,))
        return graph.call_function(TO_COPY, (lowered,), {"dtype": torch.uint8})
