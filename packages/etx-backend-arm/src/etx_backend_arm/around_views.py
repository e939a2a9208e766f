# SPDX-License-Identifier: BSD-3-Clause
"""``view(dequantize(x))`` -> ``dequantize(quantize(view(dequantize(x))))``: integers on both sides.

Lowering puts views beside operators (a linear layer of a vector is one of a row), between them and
what quantizes; in the scale that the value has already nothing is rounded.
"""

from __future__ import annotations

from typing import Any

import torch
from etx_exir.ir.constants import fake_mode_of
from etx_exir.ir.equal_values import place_beside
from etx_exir.passes.base import name_outputs, propagate
from torch.export import ExportedProgram
from torch.fx import Node

from etx_backend_arm.quantized import DEQUANTIZE, QUANTIZE, affine

__all__ = ["enclose_views"]

aten = torch.ops.aten
VIEWS = (
    aten.squeeze_copy.dim,
    aten.squeeze_copy.dims,
    aten.unsqueeze_copy.default,
    aten.view_copy.default,
)


def enclose_views(program: ExportedProgram) -> None:
    """Quantize what views read and make, where only one of them is quantized."""
    count = len(program.graph.nodes)
    for node in list(program.graph.nodes):
        if node.target not in VIEWS:
            continue
        source = node.args[0]
        others = [user for user in node.users if user.target is not QUANTIZE]
        if source.target is DEQUANTIZE and affine(source) is not None and others:
            pair = _pair(program, node, source.args[1:])
            for user in others:
                user.replace_input_with(node, pair)
        elif len(node.users) == 1 and not others and source.target is not DEQUANTIZE:
            (quantize,) = node.users
            if affine(quantize) is not None and len(source.users) == 1 and _is_operator(source):
                node.replace_input_with(source, _pair(program, source, quantize.args[1:]))
    if len(program.graph.nodes) != count:
        name_outputs(program)


def _is_operator(node: Node) -> bool:
    return node.op == "call_function" and node.target not in VIEWS


def _pair(program: ExportedProgram, node: Node, form: tuple[Any, ...]) -> Node:
    """Return ``node`` quantized and dequantized again."""
    mode, last = fake_mode_of(program), node
    for target in (QUANTIZE, DEQUANTIZE):
        with program.graph.inserting_after(last):
            last = program.graph.call_function(target, (last, *form))
        propagate(last, mode)
        place_beside(last, node)
    return last
