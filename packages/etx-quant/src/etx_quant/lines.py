# SPDX-License-Identifier: BSD-3-Clause
"""``upsample_linear1d(x)`` -> ``squeeze(upsample_bilinear2d(unsqueeze(x)))``, of which integer
kernels and XNNPACK have the second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node

__all__ = ["lines_as_images"]

aten = torch.ops.aten


def lines_as_images(model: GraphModule, is_taken: Callable[[Node], bool]) -> None:
    """Resize lines as images of one row, where ``is_taken``."""
    for node in model.graph.find_nodes(op="call_function", target=aten.upsample_linear1d.vec):
        if not is_taken(node):
            continue
        line, size, corners, scales = (*node.args, None)[:4]
        size, scales = size and [1, *size], scales and [1.0, *scales]
        value: Any = node.meta["val"]

        def call(target: Any, args: tuple[Any, ...], value: Any, node: Node = node) -> Node:
            made = node.graph.call_function(target, args)
            made.meta = {**node.meta, "val": value}
            made.meta.pop("tensor_meta", None)
            return made

        with model.graph.inserting_before(node):
            image = call(aten.unsqueeze.default, (line, 2), line.meta["val"][:, :, None])
            wide = (image, size, corners, scales)
            image = call(aten.upsample_bilinear2d.vec, wide, value[:, :, None])
            node.replace_all_uses_with(call(aten.squeeze.dim, (image, 2), value))
        model.graph.erase_node(node)
    model.recompile()
