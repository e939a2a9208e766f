# SPDX-License-Identifier: BSD-3-Clause
"""``batch_norm(conv(x, w, b))`` -> ``conv(x, w * s, (b - mean) * s + shift)``,
where ``s = scale / sqrt(var + eps)``; the same for ``linear``."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from etx_exir.passes.base import NodePass
from etx_exir.passes.layers import LAYERS, LINEAR, scaled_outputs

aten = torch.ops.aten

BATCH_NORM = aten._native_batch_norm_legit_no_training.default


class FuseBatchNorm(NodePass):
    """Scale the weights ahead of time; the normalisation itself disappears."""

    targets = (operator.getitem,)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        norm, index = node.args
        if index != 0 or not isinstance(norm, Node) or norm.target is not BATCH_NORM:
            return None
        layer = norm.args[0]
        if not isinstance(layer, Node) or layer.target not in LAYERS:
            return None
        if len(layer.users) != 1 or (layer.target is LINEAR and layer.meta["val"].dim() != 2):
            return None
        fused = self._fuse(layer, norm)
        if fused is None:
            return None
        held: Any = layer.args[1]
        weight, bias = (
            self.constants.add(value, f"{self.constants.name(held)}_{suffix}", self.mode)
            for value, suffix in zip(fused, ("fused", "fused_bias"), strict=True)
        )
        new = graph.call_function(layer.target, (layer.args[0], weight, bias, *layer.args[3:]))
        new.meta = {key: item for key, item in layer.meta.items() if key != "val"}
        return new

    def _fuse(self, layer: Node, norm: Node) -> tuple[Tensor, Tensor] | None:
        weight = self.constant(layer.args[1])
        bias_node = layer.args[2] if len(layer.args) > 2 else None
        bias = None if bias_node is None else self.constant(bias_node)
        scale, shift, mean, var = (
            None if arg is None else self.constant(arg) for arg in norm.args[1:5]
        )
        unknown = [
            value is None and arg is not None
            for value, arg in zip(
                (bias, scale, shift), (bias_node, norm.args[1], norm.args[2]), strict=True
            )
        ]
        if weight is None or mean is None or var is None or any(unknown):
            return None
        eps: Any = norm.args[6]
        with torch.no_grad():
            factor = torch.rsqrt(var.double() + eps)
            factor = factor if scale is None else factor * scale
            offset = -mean * factor if bias is None else (bias - mean) * factor
            offset = offset if shift is None else offset + shift
            return scaled_outputs(weight, factor.to(weight.dtype), layer), offset.to(weight.dtype)
