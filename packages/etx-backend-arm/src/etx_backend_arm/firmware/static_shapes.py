# SPDX-License-Identifier: BSD-3-Clause
"""Firmware is static: what it takes of memory is known, so no shape may change."""

from __future__ import annotations

from pathlib import Path

from etx_schema._generated.program import (
    DelegateCall,
    ExecutionPlan,
    KernelCall,
    Tensor,
    TensorShapeDynamism,
)
from etx_schema.errors import EtxError
from etx_schema.operator_names import operator_name
from etx_schema.problem import Origins
from etx_schema.pte import PteFile


def require_static(file: Path, pte: PteFile, plan: ExecutionPlan) -> None:
    """Errors: EtxError with the first operator that has a dynamic shape, and its source line."""
    dynamic = {
        i
        for i, value in enumerate(plan.values)
        if isinstance(value.val, Tensor) and value.val.shape_dynamism != TensorShapeDynamism.STATIC
    }
    if not dynamic:
        return
    what = f"{plan.name} has dynamic shapes"
    if given := [f"input {n}" for n, i in enumerate(plan.inputs) if i in dynamic]:
        what = f"{', '.join(given)} of {plan.name}: a dynamic shape"
    raise EtxError(
        f"{file}: {what}{_user(pte, plan, dynamic)}, and firmware is static: "
        "export the model without dynamic_shapes"
    )


def _user(pte: PteFile, plan: ExecutionPlan, values: set[int]) -> str:
    """Return the first instruction that has one of the values, with what is known of its origin."""
    origins = Origins.of(pte.named_data)
    for i, instruction in enumerate(plan.chains[0].instructions if plan.chains else ()):
        call = instruction.instr_args
        if isinstance(call, KernelCall | DelegateCall) and values.intersection(call.args):
            name = "a delegate"
            if isinstance(call, KernelCall):
                name = operator_name(plan, call.op_index)
            source = origins.get(plan.name or "", i).get("source")
            return f", at {name} (instruction {i}{f', {source}' if source else ''})"
    return ""
