# SPDX-License-Identifier: BSD-3-Clause
"""``convolution(x, w)`` -> ``convolution(x, w[..., 1:-1])`` where the outer taps meet only padding.

Dilated kernels on small maps do: of 3x3 taps 18 apart, an image of 14x14 meets the middle one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import Graph, Node

from etx_exir.ir.ops import arguments
from etx_exir.passes.base import NodePass

CONVOLUTION = torch.ops.aten.convolution.default


class CropKernels(NodePass):
    """Leave out, on both sides alike, what is multiplied with zeros."""

    targets = (CONVOLUTION,)

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        given = arguments(node)
        held = given["weight"]
        weight = self.constant(held)
        images = [given["input"].meta["val"].shape[2:], node.meta["val"].shape[2:]]
        if weight is None or given["transposed"]:
            return None
        if not all(isinstance(size, int) for sizes in images for size in sizes):
            return None
        rank = weight.dim() - 2
        axes = [_each(given[name], rank) for name in ("stride", "padding", "dilation")]
        outer = [outer_taps(*sizes) for sizes in zip(weight.shape[2:], *images, *axes, strict=True)]
        if not any(outer):
            return None
        if self.constants.is_shared(held) or len(self.constants.readers(held)) > 1:
            return "another layer reads the weight, whose outer taps meet only padding here"
        if not weight.isfinite().all():
            return "the weight is not finite"
        inner = weight
        for dim, n in enumerate(outer, 2):
            inner = inner.narrow(dim, n, inner.shape[dim] - 2 * n)
        name = f"{self.constants.name(held)}_cropped"
        given["weight"] = self.constants.add(inner.contiguous(), name, self.mode)
        _, padding, dilation = axes
        given["padding"] = [p - n * d for p, n, d in zip(padding, outer, dilation, strict=True)]
        return graph.call_function(CONVOLUTION, tuple(given.values()))


def _each(value: Sequence[int], rank: int) -> list[int]:
    """Return the number for each dimension of an image."""
    return [*value] if len(value) == rank else [value[0]] * rank


def outer_taps(taps: int, size: int, outputs: int, stride: int, padding: int, dilation: int) -> int:
    """Return how many taps at each end of an axis no output uses, all but one at most."""

    def is_used(tap: int) -> bool:
        first = tap * dilation - padding
        # The first output at or behind the image's begin.
        output = max(0, -(first // stride)) if first < 0 else 0
        return output < outputs and first + output * stride < size

    used = [tap for tap in range(taps) if is_used(tap)]
    if not used:
        return 0
    return min(used[0], taps - 1 - used[-1], padding // dilation)
