# SPDX-License-Identifier: BSD-3-Clause
"""``conv(batch_norm(x), w, b)`` -> ``conv(x, w * s, b + sum(w * t))``, where
``batch_norm(x) = x * s + t`` for each channel; the same for ``linear``.

Not where the convolution pads, unless ``t`` is zero: what it pads with is not normalised.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from etx_exir.analysis.weighted_ops import (
    BATCH_NORM,
    LAYERS,
    LINEAR,
    compute_dtype,
    normalisation,
    parameters,
)
from etx_exir.passes.base import NodePass


class AbsorbBatchNorm(NodePass):
    """Scale the inputs of a layer by its weights, ahead of time."""

    targets = LAYERS

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        item: Any = node.args[0]
        if item.target is not operator.getitem or item.args[1] != 0:
            return None
        norm = item.args[0]
        if norm.target is not BATCH_NORM:
            return None
        if len(item.users) != 1:
            return "another operator reads what the batch norm computes"
        if not _is_plain(node, norm):
            return "the layer is transposed, or normalised in another dimension than its channels"
        held = parameters(node, self.constants)
        if isinstance(held, str):
            return held
        affine = normalisation(norm, self.constants)
        if isinstance(affine, str):
            return affine
        weight, bias = held
        factor, offset = affine
        if _pads(node) and offset.any():
            return "what it pads with is not normalised"
        groups: Any = 1 if node.target is LINEAR else node.args[8]
        with torch.no_grad():
            dtype = compute_dtype(weight)
            scaled, moved = (_by_input(weight, t.to(dtype), groups) for t in (factor, offset))
            added = moved.flatten(1).sum(1, dtype=torch.float64)
            pair = [scaled, added if bias is None else bias + added]
        name = f"{self.constants.name(node.all_input_nodes[1])}_absorbed"
        names = (name, f"{name}_bias")
        absorbed = [
            self.constants.add(value.to(weight.dtype), chosen, self.mode)
            for value, chosen in zip(pair, names, strict=True)
        ]
        target: Any = node.target
        return graph.call_function(target, (norm.args[0], *absorbed, *node.args[3:]))


def _is_plain(layer: Node, norm: Node) -> bool:
    """Whether the layer reads the dimension that `norm` normalises as its channels."""
    source: Any = norm.args[0]
    rank = source.meta["val"].dim()
    if layer.target is LINEAR:
        return bool(rank == 2)
    weight: Any = layer.args[1]
    return not layer.args[6] and bool(rank == weight.meta["val"].dim())


def _pads(layer: Node) -> bool:
    padding: Any = () if layer.target is LINEAR else layer.args[4]
    return any(padding)


def _by_input(weight: Tensor, factor: Tensor, groups: int) -> Tensor:
    """Multiply each input channel of `weight` by its element of `factor`."""
    split = weight.reshape(groups, -1, *weight.shape[1:])
    shape = (groups, 1, -1, *[1] * (weight.dim() - 2))
    return (split * factor.reshape(shape)).flatten(0, 1)
