# SPDX-License-Identifier: BSD-3-Clause
"""int8 programs against the quantized model: integer operators have its values, permuted."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from compared_models import rows
from etx_devtools.compare import compare
from etx_exir import to_edge
from etx_quant import quantize
from etx_schema import Double, EValue, Int, KernelCall, ScalarType, Tensor, read_pte, serialize_pte
from etx_schema.operator_names import operator_name


@cache
def built():
    torch.manual_seed(0)
    module, inputs, _ = rows()["convolutions"]
    quantized = quantize(module, [(torch.randn(1, 3, 8, 8),) for _ in range(4)])
    program = torch.export.export(quantized, inputs)
    return program, inputs, serialize_pte(to_edge(program).to_executorch().pte_file)


def call(plan, operator):
    (found,) = [
        (number, step.instr_args)
        for number, step in enumerate(plan.chains[0].instructions)
        if isinstance(step.instr_args, KernelCall)
        and operator_name(plan, step.instr_args.op_index) == operator
    ]
    return found


def test_no_alarm():
    program, inputs, content = built()
    report = compare(read_pte(content), program, [inputs])
    assert report.first is None, "\n".join(report.lines())
    found = {check.operator: check.value for check in report.calls[0].checks}
    assert found["etx::quantized_conv.out"] == "quantize_per_tensor_1.permute(0, 2, 3, 1)"
    assert all(check.made is not None for check in report.calls[0].checks)


@pytest.mark.parametrize(
    "operator",
    ["etx::quantized_conv.out", "etx::quantized_depthwise_conv.out", "etx::quantized_linear.out"],
)
def test_a_wrong_weight(operator):
    program, inputs, content = built()
    pte = read_pte(content)
    plan = pte.program.execution_plan[0]
    number, found = call(plan, operator)
    tensors = [plan.values[slot].val for slot in found.args[1:-1]]
    (weight,) = [
        tensor
        for tensor in tensors
        if isinstance(tensor, Tensor)
        and tensor.data_buffer_idx
        and tensor.scalar_type == ScalarType.CHAR
    ][:1]
    data = np.frombuffer(bytes(pte.constants[weight.data_buffer_idx - 1]), np.int8)
    pte.constants[weight.data_buffer_idx - 1] = (data // 2).tobytes()
    report = compare(pte, program, [inputs])
    assert report.first is not None, "\n".join(report.lines())
    assert report.first[1].instruction == number
    assert report.first[1].operator == operator


@pytest.mark.parametrize(("argument", "value"), [(1, Double(double_val=0.5)), (2, Int(int_val=9))])
def test_a_wrong_scale_or_zero_point(argument, value):
    program, inputs, content = built()
    pte = read_pte(content)
    plan = pte.program.execution_plan[0]
    number, found = call(plan, "quantized_decomposed::dequantize_per_tensor.out")
    plan.values.append(EValue(val=value))
    found.args[argument] = len(plan.values) - 1
    report = compare(pte, program, [inputs])
    assert report.first is not None
    assert report.first[1].instruction == number
