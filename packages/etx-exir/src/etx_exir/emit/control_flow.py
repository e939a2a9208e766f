# SPDX-License-Identifier: BSD-3-Clause
"""Control flow as jumps within the one chain of a method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from etx_schema import Instruction, JumpFalseCall, MoveCall
from torch.fx import GraphModule, Node

from etx_exir.emit.arguments import encode
from etx_exir.emit.errors import EmitError
from etx_exir.emit.method import MethodEmitter, Reference
from etx_exir.emit.symbolic import slot
from etx_exir.plan.listing import Kind, Label

Emit = Callable[[MethodEmitter, GraphModule], list[Reference]]


def emit(emitter: MethodEmitter, module: GraphModule, node: Node, nodes: Emit) -> Reference:
    """Append the steps of a control-flow operator and return its results."""
    name = getattr(node.target, "_name", str(node.target))
    if name == "cond":
        return _cond(emitter, node, nodes)
    if name == "while_loop":
        return _while_loop(emitter, node, nodes)
    raise EmitError(f"{emitter.where()}: the operator {name} cannot be emitted")


def jump(emitter: MethodEmitter, condition: int | None, target: Label) -> None:
    """Append a jump to `target` if `condition` is false; None jumps always."""
    always = condition is None
    value = emitter.values.boolean(False) if condition is None else condition
    call = JumpFalseCall(cond_value_index=value, destination_instruction=0)
    step = emitter.step(Instruction(instr_args=call), "jump", [value])
    step.target, step.always = target, always


def here(emitter: MethodEmitter, label: Label) -> None:
    """Put `label` before the next step."""
    label.position = len(emitter.listing.steps)


def move(emitter: MethodEmitter, source: int, target: int) -> None:
    """Append a move of a handle."""
    call = MoveCall(move_from=source, move_to=target)
    emitter.step(Instruction(instr_args=call), "move", [source], [], [target])


def inline(
    emitter: MethodEmitter, body: GraphModule, operands: Sequence[Reference], nodes: Emit
) -> list[Reference]:
    """Append the steps of `body` with its placeholders bound to `operands`."""
    placeholders = [n for n in body.graph.nodes if n.op == "placeholder"]
    if len(placeholders) != len(operands):
        raise EmitError(
            f"{emitter.where()}: a branch takes {len(placeholders)} operands, given {len(operands)}"
        )
    emitter.environment.update(zip(placeholders, operands, strict=True))
    outer = emitter.current
    results = nodes(emitter, body)
    emitter.current = outer
    return results


def _operand(emitter: MethodEmitter, value: Any) -> Reference:
    return encode(emitter.values, emitter.lookup, value, None)


def _cond(emitter: MethodEmitter, node: Node, nodes: Emit) -> Reference:
    condition, true_node, false_node, operands = node.args
    branches = [emitter.environment[b] for b in (true_node, false_node)]  # type: ignore[index]
    bound = [_operand(emitter, o) for o in operands]  # type: ignore[union-attr]
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
    _branch(emitter, branches[0], bound, results, nodes)
    jump(emitter, None, end)
    here(emitter, other)
    _branch(emitter, branches[1], bound, results, nodes)
    here(emitter, end)
    return results


def _branch(
    emitter: MethodEmitter,
    body: GraphModule,
    operands: Sequence[Reference],
    results: Sequence[int],
    nodes: Emit,
) -> None:
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
    if offset or storage.kind is not Kind.PLANNED or not local or id(storage) in taken:
        output = emitter.clone(output)
        storage = emitter.listing.places[output].storage
    storage.merge_into(target)
    taken.add(id(target))
    return output


def _while_loop(emitter: MethodEmitter, node: Node, nodes: Emit) -> Reference:
    condition, body, initial, extra = (*node.args, ())[:4]
    test, step = (emitter.environment[g] for g in (condition, body))  # type: ignore[index]
    captured = [_operand(emitter, o) for o in extra]  # type: ignore[union-attr]
    starts = [_operand(emitter, o) for o in initial]  # type: ignore[union-attr]
    carries = [_carry(emitter, start) for start in starts]
    assign(emitter, starts, carries)
    again, end = Label(), Label()
    here(emitter, again)
    (proceed,) = inline(emitter, test, [*carries, *captured], nodes)
    jump(emitter, proceed, end)
    results = inline(emitter, step, [*carries, *captured], nodes)
    assign(emitter, results, carries)
    jump(emitter, None, again)
    here(emitter, end)
    return carries


def _carry(emitter: MethodEmitter, start: int) -> int:
    if start in emitter.fakes:
        return emitter.fresh(emitter.fakes[start])
    member = emitter.values.items[start].val
    return emitter.values.add(type(member)(**vars(member)))  # type: ignore[arg-type, misc]


def assign(emitter: MethodEmitter, sources: Sequence[int], targets: Sequence[int]) -> None:
    """Give all `targets` the values of `sources` as if at once."""
    later = list(sources)
    for at, target in enumerate(targets):
        for i in range(at + 1, len(later)):
            if _same_memory(emitter, later[i], target) and later[i] not in targets[i : i + 1]:
                later[i] = _saved(emitter, later[i])
        if later[at] != target:
            _assign_one(emitter, later[at], target)


def _same_memory(emitter: MethodEmitter, one: int, other: int) -> bool:
    places = emitter.listing.places
    if one in places and other in places:
        return places[one].root()[0] is places[other].root()[0]
    return one == other


def _saved(emitter: MethodEmitter, value: int) -> int:
    if value in emitter.fakes:
        return emitter.clone(value)
    copy = _carry(emitter, value)
    _assign_one(emitter, value, copy)
    return copy


def _assign_one(emitter: MethodEmitter, source: int, target: int) -> None:
    if target in emitter.fakes:
        args = [target, source, emitter.values.boolean(False), target]
        step = emitter.call("aten::copy_", "", args, [source], [target])
        step.copies = (source, target)
    else:
        move(emitter, source, target)


__all__ = ["assign", "emit", "here", "inline", "jump", "move"]
