# SPDX-License-Identifier: BSD-3-Clause
"""Branches."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import GraphModule, Node

from etx_exir.emit.jumps import Emit, here, inline, jump, move, operand
from etx_exir.emit.method import MethodEmitter, Reference
from etx_exir.emit.symbolic import slot
from etx_exir.plan.linear_ir import Kind, Label


def cond(emitter: MethodEmitter, node: Node, nodes: Emit) -> Reference:
    """Append both branches; each moves its results into those of the operator."""
    condition, true_node, false_node, operands = node.args
    branches = [emitter.environment[b] for b in (true_node, false_node)]  # type: ignore[index]
    bound = [operand(emitter, o) for o in operands]  # type: ignore[union-attr]
    if isinstance(condition, bool):
        return inline(emitter, branches[0 if condition else 1], bound, nodes)
    fakes = node.meta["val"]
    results = []
    for fake in fakes:
        if isinstance(fake, torch.Tensor):
            results.append(emitter.fresh(fake))
        else:
            results.append(slot(emitter, fake))
    other, end = Label(), Label()
    jump(emitter, emitter.lookup(condition), other)  # type: ignore[arg-type]
    branch(emitter, branches[0], bound, results, nodes)
    jump(emitter, None, end)
    here(emitter, other)
    branch(emitter, branches[1], bound, results, nodes)
    here(emitter, end)
    return results


def branch(
    emitter: MethodEmitter,
    body: GraphModule,
    operands: Sequence[Reference],
    results: Sequence[int],
    nodes: Emit,
) -> None:
    """Append one branch, whose outputs become `results`."""
    first = len(emitter.values.items)
    outputs = inline(emitter, body, operands, nodes)
    taken: set[int] = set()
    for output, result in zip(outputs, results, strict=True):
        if result in emitter.listing.places:
            output = _own(emitter, output, result, first, taken)
        move(emitter, output, result)


def _own(emitter: MethodEmitter, output: int, result: int, first: int, taken: set[int]) -> int:
    """Let `output`, or a copy of it, lie in the memory of `result`."""
    storage, offset = emitter.listing.places[output].root()
    target = emitter.listing.places[result].root()[0]
    local = output >= first and all(
        place.root()[0] is not storage
        for value, place in emitter.listing.places.items()
        if value < first
    )
    order = emitter.shapes[result].dim_order
    same = emitter.shapes[output].dim_order == order
    mine = local and storage.kind is Kind.PLANNED and id(storage) not in taken
    if offset or not mine or not same:
        output = emitter.clone(output, emitter.fresh(emitter.fakes[output], order))
        storage = emitter.listing.places[output].storage
    storage.merge_into(target)
    taken.add(id(target))
    return output
