# SPDX-License-Identifier: BSD-3-Clause
"""Jumps, moves and assignments: what control flow is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from etx_schema import Instruction, JumpFalseCall, MoveCall
from torch.fx import GraphModule, Node

from etx_exir.emit.arguments import encode
from etx_exir.emit.method import MethodEmitter, Reference
from etx_exir.errors import EmitError
from etx_exir.plan.linear_ir import Label

Emit = Callable[[MethodEmitter, GraphModule], list[Reference]]


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
            f"{emitter.where()}: a branch takes {len(placeholders)} operands, got {len(operands)}"
        )
    emitter.environment.update(zip(placeholders, operands, strict=True))
    outer = emitter.current
    results = nodes(emitter, body)
    emitter.current = outer
    return results


def operand(emitter: MethodEmitter, value: Any) -> Reference:
    """Return the value of an operand of a control-flow operator."""
    return encode(emitter.values, emitter.lookup, value, None)


def carry(emitter: MethodEmitter, start: int) -> int:
    """Add a value like `start` that steps assign to."""
    if start in emitter.fakes:
        return emitter.fresh(emitter.fakes[start], emitter.shapes[start].dim_order)
    member = emitter.values.items[start].val
    return emitter.values.add(type(member)(**vars(member)))  # type: ignore[arg-type, misc]


def assign(
    emitter: MethodEmitter,
    sources: Sequence[int],
    targets: Sequence[int],
    origins: Sequence[Node | None] = (),
) -> None:
    """Give all `targets` the values of `sources` as if at once; `origins` say where each is."""
    later = list(sources)
    for at, target in enumerate(targets):
        for i in range(at + 1, len(later)):
            if _same_memory(emitter, later[i], target) and later[i] not in targets[i : i + 1]:
                emitter.current = origins[i] if origins else emitter.current
                later[i] = _saved(emitter, later[i])
        if later[at] != target:
            emitter.current = origins[at] if origins else emitter.current
            _assign_one(emitter, later[at], target)


def _same_memory(emitter: MethodEmitter, one: int, other: int) -> bool:
    places = emitter.listing.places
    if one in places and other in places:
        return places[one].root()[0] is places[other].root()[0]
    return one == other


def _saved(emitter: MethodEmitter, value: int) -> int:
    if value in emitter.fakes:
        return emitter.clone(value)
    copy = carry(emitter, value)
    _assign_one(emitter, value, copy)
    return copy


def _assign_one(emitter: MethodEmitter, source: int, target: int) -> None:
    if target not in emitter.fakes:
        move(emitter, source, target)
    elif _resizes(emitter, source, target):
        emitter.clone(source, target)
    else:
        args = [target, source, emitter.values.boolean(False), target]
        step = emitter.call("aten::copy_", "", args, [source], [target])
        step.copies = (source, target)


def _resizes(emitter: MethodEmitter, source: int, target: int) -> bool:
    """Tell whether `target` has to take over sizes known at run time, or changes the layout."""
    one, other = emitter.shapes[source], emitter.shapes[target]
    return one.dynamic or other.dynamic or one.dim_order != other.dim_order
