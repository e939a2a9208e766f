# SPDX-License-Identifier: BSD-3-Clause
"""Programs with one planted fault: the report leads to its instruction."""

from __future__ import annotations

import numpy as np
import pytest
from compared_models import content, exported
from etx_devtools.compare import compare
from etx_schema import Double, EValue, Int, KernelCall, Tensor, read_pte
from etx_schema.operator_names import operator_name

REPLACED = {
    "aten::sigmoid": "aten::tanh",
    "aten::mean": "aten::sum",
    "aten::sin": "aten::cos",
    "aten::gelu": "aten::relu",
    "aten::tanh": "aten::sigmoid",
}


class Plan:
    """A method whose parts are changed."""

    def __init__(self, name):
        self.program, self.inputs = exported(name)
        self.pte = read_pte(content(name))
        self.plan = self.pte.program.execution_plan[0]

    def call(self, operator, turn=0):
        """Return number and call of the instruction that calls `operator` for the `turn`th time."""
        found = [
            (number, step.instr_args)
            for number, step in enumerate(self.plan.chains[0].instructions)
            if isinstance(step.instr_args, KernelCall)
            and operator_name(self.plan, step.instr_args.op_index) == operator
        ]
        return found[turn]

    def change_constant(self, slot, change):
        """Change the bytes of a constant that only this slot reads."""
        tensor = self.plan.values[slot].val
        data = np.frombuffer(bytes(self.pte.constants[tensor.data_buffer_idx - 1]), np.float32)
        self.pte.constants[tensor.data_buffer_idx - 1] = change(data.copy()).tobytes()

    def found(self):
        report = compare(self.pte, self.program, [self.inputs])
        assert report.first is not None, "\n".join(report.lines())
        assert f"instruction {report.first[1].instruction} is the first" in next(report.lines())
        return report.first[1]


def scaled(part, factor):
    def change(data):
        data[: max(1, int(len(data) * part))] *= factor
        return data

    return change


def to_nan(data):
    data[1] = np.nan
    return data


@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("argument", [1, 2])
@pytest.mark.parametrize("change", [scaled(0.2, 1.2), scaled(1, 1.001), to_nan])
def test_a_wrong_weight_or_bias(turn, argument, change):
    plan = Plan("convolutions")
    number, call = plan.call("aten::convolution.out", turn)
    plan.change_constant(call.args[argument], change)
    check = plan.found()
    assert check.instruction == number
    assert check.value == ("batch_norm" if turn == 0 else "batch_norm_1")
    assert check.module == ("stem.0" if turn == 0 else "depthwise")
    assert check.source.startswith("compared_models.py:")
    if change is to_nan:
        assert check.made.nan
    else:
        assert "file differ" in check.cause


@pytest.mark.parametrize(
    ("model", "operator"),
    [
        ("convolutions", "aten::sigmoid.out"),
        ("branch", "aten::sin.out"),
        ("nested", "aten::tanh.out"),
        ("dynamic", "aten::tanh.out"),
    ],
)
def test_another_operator(model, operator):
    plan = Plan(model)
    number, call = plan.call(operator)
    name = plan.plan.operators[call.op_index].name
    plan.plan.operators[call.op_index].name = REPLACED[name]
    assert plan.found().instruction == number


def test_a_part_of_an_operator_without_values_of_its_own():
    plan = Plan("recurrent")
    number, call = plan.call("aten::tanh.out")
    plan.plan.operators[call.op_index].name = "aten::sigmoid"
    check = plan.found()
    assert check.instruction > number
    assert number in check.suspects


def test_swapped_operands():
    plan = Plan("nested")
    number, call = plan.call("aten::sub.out")
    call.args[:2] = call.args[1::-1]
    check = plan.found()
    assert (check.instruction, check.value) == (number, "sub")


def test_a_wrong_number():
    plan = Plan("transformer")
    number, call = plan.call("aten::mul.Scalar_out")
    slot = call.args[1]
    assert isinstance(plan.plan.values[slot].val, (Double, Int))
    plan.plan.values[slot] = EValue(val=Double(double_val=4.01))
    assert plan.found().instruction == number


def test_the_wrong_branch():
    plan = Plan("branch")
    number, call = plan.call("aten::gt.Scalar_out")
    plan.plan.operators[call.op_index].name = "aten::lt"
    assert plan.found().instruction == number


def test_memory_that_overlaps():
    plan = Plan("convolutions")
    _, reader = plan.call("aten::add.out")
    mine = plan.plan.values[reader.args[0]].val
    number, between = plan.call("aten::sigmoid.out")
    other = plan.plan.values[between.args[-1]].val
    assert isinstance(mine, Tensor)
    other.allocation_info = mine.allocation_info
    check = plan.found()
    assert check.operator in ("aten::add.out", "aten::sigmoid.out")
    assert check.instruction >= number
