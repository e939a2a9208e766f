# SPDX-License-Identifier: BSD-3-Clause
"""``pad(x, [-1, 2])`` -> ``pad(slice(x, 1), [0, 2])``.

ExecuTorch's kernel takes no negative padding.
"""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from etx_exir.ir.ops import SLICE
from etx_exir.passes.base import NodePass

aten = torch.ops.aten
END = 2**63 - 1


class CropFirst(NodePass):
    """Take a part of what is cropped, then pad it."""

    targets = (aten.constant_pad_nd.default,)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Return the padded part, or the part; None where nothing is cropped."""
        source, given, *value = node.args
        pads = [pad for pad in given if isinstance(pad, int)]  # type: ignore[union-attr]
        if min(pads, default=0) >= 0 or len(pads) < len(given):  # type: ignore[arg-type]
            return None
        rank = node.meta["val"].dim()
        for i, (before, after) in enumerate(zip(pads[::2], pads[1::2], strict=True)):
            if before < 0 or after < 0:
                first, last = max(0, -before), after if after < 0 else END
                source = graph.call_function(SLICE, (source, rank - 1 - i, first, last))
        left = [max(0, pad) for pad in pads]
        if not any(left):
            return source  # type: ignore[return-value]
        return graph.call_function(aten.constant_pad_nd.default, (source, left, *value))
