# SPDX-License-Identifier: BSD-3-Clause
"""What an instruction calls, and what comes of it."""

from __future__ import annotations

from etx_schema._generated.program import ExecutionPlan, KernelCall, Tensor, TensorList
from etx_schema.dtypes import dtype_name


def operator_name(plan: ExecutionPlan, index: int) -> str:
    """Return an operator's registry key: the name, and `.overload` unless that is empty."""
    if not 0 <= index < len(plan.operators):
        return f"<operator {index}>"
    operator = plan.operators[index]
    return f"{operator.name}.{operator.overload}" if operator.overload else f"{operator.name}"


def out_dtype(plan: ExecutionPlan, call: KernelCall) -> str | None:
    """Return the dtype of the (first) tensor that a call returns, None when it returns none."""
    if not call.args or not 0 <= call.args[-1] < len(plan.values):
        return None
    result = plan.values[call.args[-1]].val
    if isinstance(result, TensorList):
        first = result.items[0] if result.items else -1
        result = plan.values[first].val if 0 <= first < len(plan.values) else None
    return dtype_name(result.scalar_type) if isinstance(result, Tensor) else None
