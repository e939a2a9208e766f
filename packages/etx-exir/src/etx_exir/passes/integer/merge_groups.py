# SPDX-License-Identifier: BSD-3-Clause
"""``quantized_conv(x, w, groups)`` -> the same of a weight whose blocks hold several groups.

A packed weight has 16 channels in a block, filled up with zeros. Groups of fewer channels that lie
in one block, with zeros between them, are computed as one wider group: that takes no more products
than each by itself, reads wider parts of a point, and is fewer calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.fx import Graph, Node

from etx_exir.integer.kernel import groups_of_block
from etx_exir.integer.layers import LIMIT
from etx_exir.integer.layout import Layouts
from etx_exir.ir.integer_ops import CONV
from etx_exir.ir.ops import arguments
from etx_exir.ir.packed_weights import pack, unpack
from etx_exir.passes.base import NodePass


class MergeGroups(NodePass):
    """Fill blocks of channels: the same sums, since what is added to them is zeros."""

    targets = (CONV,)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        given = arguments(node)
        weight, bias = self.constant(given["weight"]), self.constant(given["bias"])
        groups: int = given["groups"]
        channels = given["weight_sums"].meta["val"].shape[0] // groups
        inputs = given["input"].meta["val"].shape[-1] // groups
        count, taps = groups_of_block(groups, channels), math.prod(given["kernel_size"])
        depth = taps * inputs * count
        most = 0 if bias is None else int(bias.abs().max())
        if weight is None or weight.shape[0] != groups or count == 1:
            return None
        if depth * 255 * 128 + most >= LIMIT:
            return None
        wide = [
            _merged(part.chunk(count), channels, taps, inputs)
            for part in weight.chunk(groups // count)
        ]
        name = f"{self.constants.name(given['weight'])}_merged"
        stored = Layouts(self, graph).constant(torch.cat(wide), name)
        return graph.call_function(CONV, tuple((given | {"weight": stored}).values()))


def _merged(parts: Sequence[Tensor], channels: int, taps: int, inputs: int) -> Tensor:
    """Return the packed weight that has those of `parts` on its diagonal."""
    count = len(parts)
    wide = parts[0].new_zeros(count, channels, taps, count, inputs)
    for i, part in enumerate(parts):
        wide[i, :, :, i] = unpack(part, channels, taps * inputs).view(channels, taps, inputs)
    return pack(wide.view(count * channels, -1))
