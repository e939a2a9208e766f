# SPDX-License-Identifier: BSD-3-Clause
"""``embedding(table, i)`` -> ``embedding(table, int32(i))``, ``argmax(x)`` ->
``int64(int32(argmax(x)))``: where TOSA takes the operator, its numbers have 32 bits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from etx_exir.ir.constants import fake_mode_of
from etx_exir.ir.equal_values import place_beside
from etx_exir.passes.base import name_outputs, propagate
from torch.export import ExportedProgram
from torch.fx import Node

from etx_backend_arm.nodes.indices import ARGMAX, COPY, INDEXING, indices_of
from etx_backend_arm.quantized import QUANTIZE, Look

__all__ = ["narrow_indices", "split_constants"]


def split_constants(program: ExportedProgram, look: Look) -> None:
    """Give every user of a constant that is quantized a quantization of its own."""
    for node in list(program.graph.nodes):
        if node.target is not QUANTIZE or look(node) is None:
            continue
        for user in list(node.users)[1:]:
            with program.graph.inserting_after(node):
                copy = program.graph.node_copy(node)
            user.replace_input_with(node, copy)


def narrow_indices(
    program: ExportedProgram, look: Look, refusal: Callable[[Node], str | None]
) -> None:
    """Add conversions beside the operators that ``refusal`` has no reason against with them."""
    before = list(program.graph.nodes)
    for node in before:
        if node.target is ARGMAX and node.users:
            _behind(program, node, refusal)
        elif node.target in INDEXING:
            long = [
                each
                for each in dict.fromkeys(indices_of(node))
                if each.meta["val"].dtype == torch.int64 and look(each) is None
            ]
            if long:
                _before(program, node, long, refusal)
    if len(program.graph.nodes) != len(before):
        name_outputs(program)


def _conversion(program: ExportedProgram, source: Node, after: Node, dtype: torch.dtype) -> Node:
    with program.graph.inserting_after(after):
        order = list(range(source.meta["val"].dim()))
        made: Node = program.graph.call_function(
            COPY, (source,), {"dtype": dtype, "dim_order": order}
        )
    propagate(made, fake_mode_of(program))
    return made


def _before(
    program: ExportedProgram,
    node: Node,
    indices: list[Node],
    refusal: Callable[[Node], str | None],
) -> None:
    made = [_conversion(program, index, node.prev, torch.int32) for index in indices]
    for index, narrow in zip(indices, made, strict=True):
        place_beside(narrow, node)
        node.replace_input_with(index, narrow)
    if refusal(node) is None:
        return
    for index, narrow in zip(indices, made, strict=True):
        node.replace_input_with(narrow, index)
        program.graph.erase_node(narrow)


def _behind(program: ExportedProgram, node: Node, refusal: Callable[[Node], str | None]) -> None:
    users = [user for user in node.users if not _is_narrow(user)]
    narrow = _conversion(program, node, node, torch.int32)
    whole = _conversion(program, narrow, narrow, torch.int64)
    for made in (narrow, whole):
        made.meta.update({key: item for key, item in node.meta.items() if key != "val"})
    for user in users:
        user.replace_input_with(node, whole)
    if refusal(node) is None and users:
        return
    for user in users:
        user.replace_input_with(whole, node)
    program.graph.erase_node(whole)
    program.graph.erase_node(narrow)


def _is_narrow(node: Node) -> bool:
    return node.target is COPY and node.meta["val"].dtype == torch.int32
