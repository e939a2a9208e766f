# SPDX-License-Identifier: BSD-3-Clause
"""The temporary memory of each kernel of `cortex_m::` on a board, from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from etx_schema._generated.program import ExecutionPlan, KernelCall, Null
from etx_schema.inspect.arenas import Arena
from etx_schema.operator_names import operator_name

ALIGNMENT = 64
WINDOWS = 8
"""Windows that a convolution copies at a time, where there is room: kWindows of
native/cortex_m/conv2d.cpp."""
GROWTH = 0.01
"""By how much of an arena scratch may make it larger for more than one window."""
Values = Sequence[Any]


@dataclass(frozen=True)
class Scratch:
    """What a call of an operator allocates: arrays, then one of up to WINDOWS times `window`."""

    operator: str
    arrays: list[int]
    window: int = 0

    def size(self, windows: int = WINDOWS) -> int:
        """Return the bytes from the first array's begin to the last one's end."""
        end = 0
        for size in (*self.arrays, self.window * windows):
            end = aligned(end) + size if size else end
        return end


@dataclass(frozen=True)
class Place:
    """Bytes of an arena, lent to one instruction."""

    at: int = 0
    size: int = 0


def kernel_temporary(plan: ExecutionPlan) -> dict[str, int]:
    """Return the most bytes that each operator of `cortex_m::` that asks for some takes."""
    found: dict[str, int] = {}
    for scratch in call_temporary(plan).values():
        found[scratch.operator] = max(found.get(scratch.operator, 0), scratch.size())
    return found


def call_temporary(plan: ExecutionPlan) -> dict[int, Scratch]:
    """Return what calls allocate by the number of their instruction."""
    found: dict[int, Scratch] = {}
    for i, instruction in enumerate(plan.chains[0].instructions):
        call = instruction.instr_args
        if isinstance(call, KernelCall) and (name := operator_name(plan, call.op_index)) in RULES:
            values = [plan.values[each].val for each in call.args]
            found[i] = Scratch(name, *RULES[name](plan, values))
    return found


def aligned(size: int) -> int:
    """Return the first place from `size` on where a kernel's array may begin."""
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def place_temporary(plan: ExecutionPlan, arena: Arena) -> list[Place]:
    """Return for each instruction where in `arena` its scratch lies, beside what is live then.

    A convolution gets room for as many windows as do not make the arena larger by GROWTH.
    """
    calls = call_temporary(plan)
    places = []
    for i in range(len(plan.chains[0].instructions)):
        place = Place()
        for windows in range(WINDOWS, 0, -1) if i in calls else ():
            place = _place(calls[i].size(windows), arena, i + 1)
            if place.at + place.size <= arena.size * (1 + GROWTH):
                break
        places.append(place)
    return places


def _place(size: int, arena: Arena, step: int) -> Place:
    """Return the lowest free bytes of a step."""
    if size == 0:
        return Place()
    at = 0
    for each in sorted(arena.allocations, key=lambda each: each.start):
        if each.first <= step <= each.last and each.end > at:
            if each.start - at >= size:
                break
            at = aligned(each.end)
    return Place(at, size)


Need = tuple[list[int], int]
"""Bytes of arrays, and of a window."""


def _conv2d(plan: ExecutionPlan, values: Values, channels_at: int) -> Need:
    """The beginnings of the sums, unless they are the bias, and copies of windows."""
    outputs, height, width, depth = values[1].sizes
    padding = [plan.values[i].val.int_val for i in values[4].items]
    has_start = values[6].int_val == 0 and not isinstance(values[2], Null)
    starts = [] if has_start else [4 * outputs * depth // values[0].sizes[channels_at]]
    has_points = (height, width) == (1, 1) and not any(padding)
    return starts, 0 if has_points else height * width * depth


def _linear(plan: ExecutionPlan, values: Values) -> Need:
    """Four numbers of each output."""
    return [16 * values[1].sizes[0]], 0


def _batch_matmul(plan: ExecutionPlan, values: Values) -> Need:
    """Four numbers of each column."""
    return [16 * values[2].sizes[1]], 0


def _transpose_conv2d(plan: ExecutionPlan, values: Values) -> Need:
    """The beginnings of the sums, and the input under a window."""
    outputs, height, width, inputs = values[1].sizes
    return [4 * outputs, height * width * inputs], 0


RULES: dict[str, Callable[[ExecutionPlan, Values], Need]] = {
    "cortex_m::quantized_conv2d.out": lambda plan, values: _conv2d(plan, values, 1),
    "cortex_m::quantized_conv2d_nhwc.out": lambda plan, values: _conv2d(plan, values, 3),
    "cortex_m::quantized_linear.out": _linear,
    "cortex_m::quantized_batch_matmul.out": _batch_matmul,
    "cortex_m::quantized_transpose_conv2d.out": _transpose_conv2d,
    "cortex_m::quantized_transpose_conv2d_nhwc.out": _transpose_conv2d,
}
"""The sizes of what a kernel allocates, in its order; tests compare with boards, and hold that
operators of other families allocate nothing."""
