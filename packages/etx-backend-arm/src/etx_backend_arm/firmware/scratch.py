# SPDX-License-Identifier: BSD-3-Clause
"""The temporary memory of each kernel of `cortex_m::` on a board, from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from etx_schema._generated.program import ExecutionPlan, KernelCall, Null
from etx_schema.operator_names import operator_name

ALIGNMENT = 64
WINDOWS = 8
"""Windows that a convolution copies at a time: kWindows of native/cortex_m/conv2d.cpp."""
Values = Sequence[Any]


def kernel_temporary(plan: ExecutionPlan) -> dict[str, int]:
    """Return the most bytes that each operator of `cortex_m::` that asks for some takes."""
    found: dict[str, int] = {}
    for instruction in plan.chains[0].instructions:
        call = instruction.instr_args
        if not isinstance(call, KernelCall):
            continue
        name = operator_name(plan, call.op_index)
        if rule := RULES.get(name):
            values = [plan.values[i].val for i in call.args]
            end = 0
            for size in rule(plan, values):
                end = (end + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT + size
            found[name] = max(found.get(name, 0), end)
    return found


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
