# SPDX-License-Identifier: BSD-3-Clause
"""``w1 == w2`` bit by bit -> one constant; of weights, only those that are tied.

Weights that are equal by chance stay two: other values may be loaded for each of them. Where they
lie in the file, their bytes are stored once all the same.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node

from etx_exir.ir.constants import Constants
from etx_exir.passes.base import Pass

PROBE = 16


class ShareConstants(Pass):
    """Let all users of equal constants read the first of them."""

    def apply(self, program: ExportedProgram) -> bool:
        constants = Constants(program)
        groups: dict[tuple[torch.dtype, torch.Size], list[tuple[Node, Tensor]]] = {}
        changed = False
        for node, tensor in list(constants.items()):
            group = groups.setdefault((tensor.dtype, tensor.shape), [])
            weight = constants.is_weight(node)
            twin = next(
                (
                    first
                    for first, other in group
                    if _is_same(tensor, other)
                    or (not weight and not constants.is_weight(first) and _equal(tensor, other))
                ),
                None,
            )
            if twin is None:
                group.append((node, tensor))
                continue
            if node.users:
                node.replace_all_uses_with(twin)
                changed = True
        return changed


def _is_same(a: Tensor, b: Tensor) -> bool:
    return a.numel() > 0 and a.data_ptr() == b.data_ptr() and a.stride() == b.stride()


def _equal(a: Tensor, b: Tensor) -> bool:
    if not a.numel():
        return True
    x, y = (t.detach().contiguous().reshape(-1) for t in (a, b))
    probes = ((t[:PROBE].view(torch.uint8), t.view(torch.uint8)) for t in (x, y))
    (x_head, x_all), (y_head, y_all) = probes
    return torch.equal(x_head, y_head) and torch.equal(x_all, y_all)
