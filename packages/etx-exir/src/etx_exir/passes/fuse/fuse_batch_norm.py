# SPDX-License-Identifier: BSD-3-Clause
"""``batch_norm(conv(x, w, b))`` -> ``conv(x, w * s, b * s + t)``, where
``s = scale / sqrt(var + eps)`` and ``t = shift - mean * s``; the same for ``linear``."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.analysis.weighted_ops import (
    BATCH_NORM,
    LAYERS,
    LINEAR,
    compute_dtype,
    normalisation,
    parameters,
    same_normalisation,
    scaled_outputs,
)
from etx_exir.passes.base import NodePass


class FuseBatchNorm(NodePass):
    """Scale the weights ahead of time; the normalisation itself disappears."""

    targets = (operator.getitem,)

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        norm, index = node.args
        if index != 0 or not isinstance(norm, Node) or norm.target is not BATCH_NORM:
            return None
        layer = norm.args[0]
        if not isinstance(layer, Node) or layer.target not in LAYERS:
            return None
        if len(layer.users) != 1:
            return "another operator reads what is normalised"
        if layer.target is LINEAR and layer.meta["val"].dim() != 2:
            return "it normalises another dimension than the layer's last"
        held = parameters(layer, self.constants, partial(self._alike, norm))
        if isinstance(held, str):
            return held
        affine = normalisation(norm, self.constants)
        if isinstance(affine, str):
            return affine
        (weight, bias), (factor, offset) = held, affine
        with torch.no_grad():
            scaled = scaled_outputs(weight, factor.to(compute_dtype(weight)), layer)
            moved = offset if bias is None else bias * factor + offset
        source: Any = layer.args[1]
        name = f"{self.constants.name(source)}_fused"
        pair = ((scaled, name), (moved, f"{name}_bias"))
        fused = [self.constants.add(t.to(weight.dtype), n, self.mode) for t, n in pair]
        new = graph.call_function(layer.target, (layer.args[0], *fused, *layer.args[3:]))
        new.meta = {key: item for key, item in layer.meta.items() if key != "val"}
        return new

    def _alike(self, norm: Node, reader: Node) -> bool:
        """Whether `reader` is a layer that the same normalisation follows."""
        return reader.target in LAYERS and same_normalisation(reader, norm, self.constants)
