# SPDX-License-Identifier: BSD-3-Clause
"""Operators in the form of others that integer kernels and XNNPACK have.

``upsample_linear1d(x)`` -> ``squeeze(upsample_bilinear2d(unsqueeze(x)))``,
``pad(x, circular)`` -> ``cat(slice(x), x, slice(x))``,
``prelu(x, w)`` -> ``leaky_relu(x, w)`` of one weight, else ``relu(x) + clamp(x, max=0) * w``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from etx_quant.constants import add_constant, tensor_of

__all__ = ["rewrite_forms"]

aten = torch.ops.aten


def rewrite_forms(model: GraphModule, is_taken: Callable[[Node], bool]) -> None:
    """Rewrite the operators for which ``is_taken``."""
    for target, rewrite in FORMS.items():
        for node in model.graph.find_nodes(op="call_function", target=target):
            if not is_taken(node):
                continue
            with model.graph.inserting_before(node):
                made = rewrite(model, node)
            if made is not None:
                node.replace_all_uses_with(made)
                model.graph.erase_node(node)
    model.recompile()


def _call(node: Node, target: Any, args: tuple[Any, ...], value: Tensor) -> Node:
    made = node.graph.call_function(target, args)
    made.meta = {**node.meta, "val": value}
    made.meta.pop("tensor_meta", None)
    return made


def _resize(model: GraphModule, node: Node) -> Node:
    line, size, corners, scales = (*node.args, None)[:4]
    size, scales = size and [1, *size], scales and [1.0, *scales]  # type: ignore[misc]
    given, value = line.meta["val"], node.meta["val"]  # type: ignore[union-attr]
    image = _call(node, aten.unsqueeze.default, (line, 2), given[:, :, None])
    wide = (image, size, corners, scales)
    image = _call(node, aten.upsample_bilinear2d.vec, wide, value[:, :, None])
    return _call(node, aten.squeeze.dim, (image, 2), value)


def _leak(model: GraphModule, node: Node) -> Node | None:
    x, given = node.args
    if not isinstance(given, Node) or given.op != "get_attr":
        return None
    value = node.meta["val"]
    weight: Tensor = tensor_of(model, given).detach()
    if weight.numel() == 1:
        return _call(node, aten.leaky_relu.default, (x, float(weight)), value)
    slopes = weight.view(-1, *[1] * (value.dim() - 2))
    constant = add_constant(model, f"{node.name}_slopes", slopes, value)
    high = _call(node, aten.relu.default, (x,), value)
    low = _call(node, aten.clamp.default, (x, None, 0.0), value)
    low = _call(node, aten.mul.Tensor, (low, constant), value)
    return _call(node, aten.add.Tensor, (high, low), value)


def _wrap(model: GraphModule, node: Node) -> Node | None:
    arguments: Any = (*node.args, "constant")
    x, pads, mode = arguments[:3]
    if mode != "circular" or any(size < 0 for size in pads):
        return None
    value: Tensor = x.meta["val"]
    for i in range(len(pads) // 2):
        dim, before, behind = value.dim() - 1 - i, pads[2 * i], pads[2 * i + 1]
        parts = [(x, value)]
        if before:
            held = value.narrow(dim, value.shape[dim] - before, before)
            args = (x, dim, -before, sys.maxsize)
            parts.insert(0, (_call(node, aten.slice.Tensor, args, held), held))
        if behind:
            held = value.narrow(dim, 0, behind)
            parts.append((_call(node, aten.slice.Tensor, (x, dim, 0, behind), held), held))
        if len(parts) > 1:
            value = torch.cat([held for _, held in parts], dim)
            x = _call(node, aten.cat.default, ([part for part, _ in parts], dim), value)
    made: Node = x
    return made


FORMS: dict[Any, Callable[[GraphModule, Node], Node | None]] = {
    aten.pad.default: _wrap,
    aten.prelu.default: _leak,
    aten.upsample_linear1d.vec: _resize,
}
