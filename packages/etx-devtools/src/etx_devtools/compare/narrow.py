# SPDX-License-Identifier: BSD-3-Clause
"""Whether a file has weights, or scales of them, in bfloat16 where the model's are wider."""

from __future__ import annotations

from typing import Any

import torch
from etx_schema import ExecutionPlan
from etx_schema import Tensor as WireTensor
from etx_schema.dtypes import dtype_name
from etx_schema.problem import Origins
from torch import Tensor
from torch.fx import Node

from etx_devtools.compare.reference import Reference

__all__ = ["has_narrow_weights"]

XNNPACK = "XnnpackBackend"
OF_GROUPS = "quantized_decomposed.dequantize_per_channel_group.default"
OF_BLOCKS = "torchao.dequantize_affine.default"


def has_narrow_weights(
    plan: ExecutionPlan, method: str, origins: Origins, reference: Reference
) -> bool:
    """Tell whether constants of the file are in bfloat16 that are not in the model.

    XNNPACK's delegates hold the scales of groups of weights so.
    """
    for item in plan.values:
        value = item.val
        if not isinstance(value, WireTensor) or not value.data_buffer_idx:
            continue
        if dtype_name(value.scalar_type) != "bfloat16":
            continue
        name = origins.constant(method, value.data_buffer_idx)
        own = None if name is None else reference.constant(name)
        if own is None or own.dtype is not torch.bfloat16:
            return True
    if all(delegate.id != XNNPACK for delegate in plan.delegates):
        return False
    return any(map(_has_wide_scales, _scales_of_groups(reference)))


def _scales_of_groups(reference: Reference) -> list[Tensor]:
    found = []
    for value in reference.values.values():
        args: Any = value.node.args
        if value.operator == OF_GROUPS:
            found.append(_constant(args[1], reference))
        elif value.operator == OF_BLOCKS:
            scales = _constant(args[2], reference)
            rows = len(args[0].meta["val"])
            found.append(None if scales is None or scales.numel() <= rows else scales)
    return [scales for scales in found if scales is not None]


def _constant(node: Any, reference: Reference) -> Tensor | None:
    """Return the tensor that `node` stands for, also where it is a part of a quantized weight."""
    if not isinstance(node, Node):
        return None
    if node.op == "call_function" and "access_subclass_inner_tensor" in str(node.target):
        whole = _constant(node.args[0], reference)
        part = getattr(whole, str(node.args[1]), None)
        return part.detach() if isinstance(part, Tensor) else None
    held = reference.held.get(node)
    return held.detach() if isinstance(held, Tensor) else None


def _has_wide_scales(scales: Tensor) -> bool:
    return not torch.equal(scales.to(torch.bfloat16).to(scales.dtype), scales)
