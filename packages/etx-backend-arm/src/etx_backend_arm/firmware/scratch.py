# SPDX-License-Identifier: BSD-3-Clause
"""The temporary memory of each kernel of `cortex_m::` on a board, from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from etx_schema._generated.program import ExecutionPlan, KernelCall, Null
from etx_schema.inspect.arenas import Arena
from etx_schema.operator_names import operator_name

ALIGNMENT = 64
WINDOWS = 8
"""Windows that a convolution copies at a time: kWindows of native/cortex_m/conv2d.cpp."""
Values = Sequence[Any]


def kernel_temporary(plan: ExecutionPlan) -> dict[str, int]:
    """Return the most bytes that each operator of `cortex_m::` that asks for some takes."""
    found: dict[str, int] = {}
    for name, size in call_temporary(plan).values():
        found[name] = max(found.get(name, 0), size)
    return found


def call_temporary(plan: ExecutionPlan) -> dict[int, tuple[str, int]]:
    """Return operator and bytes by instruction, for those that ask for some."""
    found: dict[int, tuple[str, int]] = {}
    for i, instruction in enumerate(plan.chains[0].instructions):
        call = instruction.instr_args
        if not isinstance(call, KernelCall):
            continue
        name = operator_name(plan, call.op_index)
        if rule := RULES.get(name):
            end = 0
            for size in rule(plan, [plan.values[each].val for each in call.args]):
                end = aligned(end) + size
            found[i] = (name, end)
    return found


def aligned(size: int) -> int:
    """Return the first place from `size` on where a kernel's array may begin."""
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def place_temporary(plan: ExecutionPlan, arena: Arena) -> int:
    """Return where in `arena` temporary memory lies: no call's meets a tensor that is live then.

    The arena grows where there is no such place inside of it; the least growth is taken.
    """
    calls = {i + 1: size for i, (_, size) in call_temporary(plan).items()}
    places = {0, *(aligned(each.end) for each in arena.allocations)}
    free = [
        place
        for place in places
        if not any(
            each.first <= step <= each.last and each.start < place + size and place < each.end
            for step, size in calls.items()
            for each in arena.allocations
        )
    ]
    return min(free, key=lambda place: (max(arena.size, place + max(calls.values())), place))


def _conv2d(plan: ExecutionPlan, values: Values, channels_at: int) -> list[int]:
    """The beginnings of the sums, unless they are the bias, and copies of windows."""
    outputs, height, width, depth = values[1].sizes
    padding = [plan.values[i].val.int_val for i in values[4].items]
    sizes = []
    if values[6].int_val != 0 or isinstance(values[2], Null):
        sizes.append(4 * outputs * depth // values[0].sizes[channels_at])
    if (height, width) != (1, 1) or any(padding):
        sizes.append(height * width * depth * WINDOWS)
    return sizes


def _linear(plan: ExecutionPlan, values: Values) -> list[int]:
    """Four numbers of each output."""
    return [16 * values[1].sizes[0]]


def _batch_matmul(plan: ExecutionPlan, values: Values) -> list[int]:
    """Four numbers of each column."""
    return [16 * values[2].sizes[1]]


def _transpose_conv2d(plan: ExecutionPlan, values: Values) -> list[int]:
    """The beginnings of the sums, and the input under a window."""
    outputs, height, width, inputs = values[1].sizes
    return [4 * outputs, height * width * inputs]


RULES: dict[str, Callable[[ExecutionPlan, Values], list[int]]] = {
    "cortex_m::quantized_conv2d.out": lambda plan, values: _conv2d(plan, values, 1),
    "cortex_m::quantized_conv2d_nhwc.out": lambda plan, values: _conv2d(plan, values, 3),
    "cortex_m::quantized_linear.out": _linear,
    "cortex_m::quantized_batch_matmul.out": _batch_matmul,
    "cortex_m::quantized_transpose_conv2d.out": _transpose_conv2d,
    "cortex_m::quantized_transpose_conv2d_nhwc.out": _transpose_conv2d,
}
"""The sizes of what a kernel allocates, in its order; tests compare with boards, and hold that
operators of other families allocate nothing."""
