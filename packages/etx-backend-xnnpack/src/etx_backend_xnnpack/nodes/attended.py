# SPDX-License-Identifier: BSD-3-Clause
"""What attention reads in two parts: a cache, and what is put into it, one behind the other."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from etx_backend_xnnpack.nodes.table import shape_of
from etx_backend_xnnpack.quantized import argument

aten = torch.ops.aten
ATTENTION = aten.scaled_dot_product_attention.default


def attended(node: Any) -> list[Node]:
    """Return the keys or values of attention one behind the other: two that only it reads joined,
    the first of known length."""
    parts = _parts(node, 2)
    if len(parts) != 2 or not isinstance(shape_of(parts[0])[2], int):
        return [node]
    for user in node.users:
        if user.target != ATTENTION or node not in user.args[1:3]:
            return [node]
        if not isinstance(shape_of(parts[1])[2], int) and not has_open_end(user):
            return [node]
    return parts


def has_open_end(node: Node) -> bool:
    """Tell whether attention reads keys and values of which a symbolic number is behind others."""
    lengths = [[shape_of(part)[2] for part in _parts(each, 2)] for each in node.args[1:3]]
    if any(len(some) != 2 or isinstance(some[1], int) for some in lengths):
        return False
    if not isinstance(lengths[0][0], int) or not _same(*lengths) or argument(node, "is_causal"):
        return False
    return argument(node, "attn_mask") is None or bool(mask_parts(node))


def mask_parts(node: Node) -> list[Node]:
    """Return the parts of a mask that are as long as those of the keys; none for another mask."""
    mask: Any = argument(node, "attn_mask")
    if mask is None:
        return []
    parts = _parts(mask, len(shape_of(mask)) - 1)
    lengths = [shape_of(part)[2] for part in _parts(node.args[1], 2)]
    return parts if _same([shape_of(part)[-1] for part in parts], lengths) else []


def is_parted_mask(node: Node) -> bool:
    """Tell whether only attention reads `node`, a mask, and each time its parts."""
    return all(
        user.target == ATTENTION
        and argument(user, "attn_mask") is node
        and node not in user.args[:3]
        and has_open_end(user)
        for user in node.users
    )


def _parts(node: Any, dim: int) -> list[Node]:
    """Return what a node joins along `dim`; else the node."""
    if node.target != aten.cat.default:
        return [node]
    return list(node.args[0]) if argument(node, "dim") % len(shape_of(node)) == dim else [node]


def _same(some: list[Any], others: list[Any]) -> bool:
    if len(some) != len(others):
        return False
    return all(statically_known_true(a == b) for a, b in zip(some, others, strict=True))
