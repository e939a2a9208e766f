# SPDX-License-Identifier: BSD-3-Clause
"""Which calls of a method compute in float32, why, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from etx_schema._generated.program import (
    DelegateCall,
    ExecutionPlan,
    KernelCall,
    ScalarType,
    Tensor,
    TensorList,
)
from etx_schema.dtypes import tensor_nbytes
from etx_schema.operator_names import operator_name
from etx_schema.problem import Origins
from etx_schema.pte import PteFile

TO_INTEGERS = ("cortex_m::quantize_per_tensor", "quantized_decomposed::quantize_per_tensor")
TO_FLOAT = ("cortex_m::dequantize_per_tensor", "quantized_decomposed::dequantize_per_tensor")
INTEGER = (
    "_softmax abs add addmm avg_pool2d bmm cat clamp convolution div elu gelu hardsigmoid "
    "hardswish hardtanh leaky_relu linear max_pool2d max_pool2d_with_indices maximum mean minimum "
    "mm mul neg permute_copy relu select_copy sigmoid silu slice_copy sub tanh view_copy"
)
"""Operators that have a counterpart in integers where their operands are quantized."""
NORMS = "native_layer_norm native_group_norm native_batch_norm rms_norm"
RECURRENT = "lstm gru rnn_tanh rnn_relu"
UNQUANTIZED = "the model is not quantized: see CortexMQuantizer of etx_backend_arm.cortex_m"


@dataclass(frozen=True)
class FloatCall:
    """A call that reads or writes float32: bytes of the values that it makes and of its weights."""

    operator: str
    instruction: int
    source: str
    reason: str
    values: int
    weights: int

    def line(self) -> str:
        """Return it as text."""
        place = f"instruction {self.instruction}{f', {self.source}' if self.source else ''}"
        cost = f"{self.values:,} bytes of values"
        cost += f" and {self.weights:,} of weights" if self.weights else ""
        return f"  {self.operator} ({place}): {cost}; {self.reason}\n"


def float_calls(pte: PteFile, plan: ExecutionPlan) -> tuple[FloatCall, ...]:
    """Return a method's calls in float32, but those at its edges that convert and nothing else."""
    origins = Origins.of(pte.named_data)
    made = set(plan.inputs)
    edges = made | set(plan.outputs)
    has_integers = any(
        operator_name(plan, i)[:10] == "cortex_m::" for i in range(len(plan.operators))
    )
    found = []
    for i, instruction in enumerate(plan.chains[0].instructions if plan.chains else ()):
        call = instruction.instr_args
        if not isinstance(call, KernelCall):
            made |= set(call.args) if isinstance(call, DelegateCall) else set()
            continue
        name = operator_name(plan, call.op_index)
        floats = dict(_floats(plan, call.args))
        new = {
            at: size for at, (size, is_weight) in floats.items() if not is_weight and at not in made
        }
        made |= set(call.args)
        if not floats or name.startswith(("executorch_prim::", "etx::view_at")):
            continue
        base = name.partition(".")[0]
        if base in TO_INTEGERS + TO_FLOAT and floats.keys() <= edges:
            continue
        weights = sum(size for size, is_weight in floats.values() if is_weight)
        source = origins.get(plan.name or "", i).get("source") or ""
        reason = _reason(base, has_integers)
        found.append(FloatCall(name, i, source, reason, sum(new), weights))
    return tuple(found)


def _floats(plan: ExecutionPlan, args: Sequence[int]) -> Iterator[tuple[int, tuple[int, bool]]]:
    """Yield bytes of the float32 tensors among values, and whether they are weights."""
    for at in args:
        value: Any = plan.values[at].val
        if isinstance(value, TensorList):
            yield from _floats(plan, value.items)
        elif isinstance(value, Tensor) and value.scalar_type == ScalarType.FLOAT:
            is_weight = value.data_buffer_idx != 0 and value.allocation_info is None
            yield at, (tensor_nbytes(value), is_weight)


def _reason(operator: str, has_integers: bool) -> str:
    """Return why an operator computes in float."""
    if operator in TO_INTEGERS:
        return "what comes before computes in float"
    if operator in TO_FLOAT:
        return "what follows computes in float"
    name = operator.rpartition("::")[2]
    if not has_integers:
        return UNQUANTIZED
    if operator.startswith("etx::"):
        return "its weights are integers and its activations float: no range of those is known"
    if name in NORMS.split():
        return "a norm computes with the range of each row, and no operator of cortex_m:: does"
    if name in RECURRENT.split():
        return "the quantizer unrolls up to 256 steps of a known number"
    if name in INTEGER.split():
        return "its operands are not quantized: the quantizer left it, or only float is beside it"
    return "no operator of cortex_m:: computes it, and no table does"


def float_table(calls: Sequence[FloatCall]) -> str:
    """Return what stays float as text, a line each; nothing where nothing does."""
    if not calls:
        return ""
    values, weights = (sum(getattr(c, kind) for c in calls) for kind in ("values", "weights"))
    head = f"in float: {len(calls)} operator{'s' if len(calls) > 1 else ''}"
    more = (values + weights) // 4 * 3
    head += f", {values:,} bytes of values and {weights:,} of weights; int8 takes {more:,} less\n"
    if all(call.reason == UNQUANTIZED for call in calls):
        return f"{head}  {UNQUANTIZED}\n"
    return head + "".join(call.line() for call in calls)
