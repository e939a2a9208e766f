# SPDX-License-Identifier: BSD-3-Clause
"""Operators that move values, and compute none."""

from __future__ import annotations

import torch
from torch.fx import Node

from etx_backend_arm.nodes.table import Profile, arguments, lowers, quantized, static_shape
from etx_backend_arm.values import Values

aten = torch.ops.aten
INT8 = (quantized, static_shape)


def reshaped(values: Values, node: Node) -> None:
    """Lower to RESHAPE."""
    step = values.step(node)
    made = values.graph.reshape(values.get(step.sources[0]), values.shape(node), f"{node.name}_as")
    values.requantize(step, made, [step.forms[0].scale], points=step.forms[0].zero_point)


for target in (
    aten.view_copy.default,
    aten.squeeze_copy.dims,
    aten.unsqueeze_copy.default,
):
    lowers(target, when=INT8, profile=Profile.INT)(reshaped)


@lowers(aten.permute_copy.default, when=INT8, profile=Profile.INT)
def permuted(values: Values, node: Node) -> None:
    """Lower to TRANSPOSE."""
    step, perms = values.step(node), [d % node.meta["val"].dim() for d in arguments(node)[1]]
    source, graph = values.get(step.sources[0]), values.graph
    made = graph.transpose(
        source, perms, f"{node.name}_as", values.shape(node), graph.dtype(source)
    )
    values.requantize(step, made, [step.forms[0].scale], points=step.forms[0].zero_point)
