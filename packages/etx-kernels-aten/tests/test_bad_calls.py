# SPDX-License-Identifier: BSD-3-Clause
"""Files that call torch's operators wrongly are errors, never the end of the process."""

from __future__ import annotations

import random

import etx_runtime
import pytest
import torch
from etx_schema import EValue, Int, Null, Operator, String, read_pte, serialize_pte
from one_call import program_of

aten = torch.ops.aten


@pytest.fixture
def add():
    """Return a file that adds two tensors, to be changed."""
    x = torch.ones(2, 3)
    return read_pte(program_of(aten.add.Tensor, (x, x), {"alpha": 2}, [x])[0])


def plan_of(pte):
    (plan,) = pte.program.execution_plan
    return plan, plan.chains[0].instructions[0].instr_args


def run(pte, *inputs):
    return etx_runtime.load(serialize_pte(pte), kernels="aten").run_method("forward", inputs)


X = torch.ones(2, 3)


def test_too_few_arguments(add):
    _, call = plan_of(add)
    call.args = call.args[:2]
    with pytest.raises(etx_runtime.ExecutionError, match=r"gives 2 arguments, too few for torch's"):
        run(add, X, X)


@pytest.mark.parametrize("value", [Null(), String(string_val="a")])
def test_an_argument_of_another_kind(add, value):
    plan, call = plan_of(add)
    plan.values[call.args[2]] = EValue(value)
    with pytest.raises(etx_runtime.ExecutionError, match=r"argument 'alpha' is not of the kind"):
        run(add, X, X)


@pytest.mark.parametrize("place", [0, -1])
def test_a_text_for_a_tensor(add, place):
    plan, call = plan_of(add)
    plan.values.append(EValue(String(string_val="a")))
    call.args = list(call.args)
    call.args[place if place == 0 else -2] = len(plan.values) - 1
    name = "self" if place == 0 else "out"
    with pytest.raises(etx_runtime.ExecutionError, match=rf"argument '{name}' is not of the kind"):
        run(add, X, X)


def test_a_number_for_a_tensor_is_taken_as_eager_does(add):
    plan, call = plan_of(add)
    plan.values.append(EValue(Int(int_val=1)))
    call.args = [call.args[0], len(plan.values) - 1, *call.args[2:]]
    (y,) = run(add, X, X)
    torch.testing.assert_close(torch.from_numpy(y), X + 2)


def test_a_result_of_other_sizes(add):
    plan, call = plan_of(add)
    plan.values[call.args[-1]].val.sizes = [3, 1]
    with pytest.raises(etx_runtime.ExecutionError, match=r"other sizes than the program has room"):
        run(add, X, X)


def test_a_result_that_lies_on_part_of_an_argument():
    x = torch.arange(6.0).reshape(2, 3)
    pte = read_pte(program_of(aten.cumsum.default, (x, 1), {}, [x])[0])
    plan, call = plan_of(pte)
    plan.values[call.args[-1]].val.allocation_info.memory_offset_low = 4
    (y,) = run(pte, x)
    torch.testing.assert_close(torch.from_numpy(y), x.cumsum(1))


def test_an_operator_that_only_other_devices_have(add):
    plan, _ = plan_of(add)
    plan.operators = [Operator(name="aten::_cudnn_init_dropout_state", overload="out")]
    with pytest.raises(etx_runtime.ExecutionError):
        run(add, X, X)


def test_any_operator_with_the_wrong_arguments(add):
    names = sorted(torch._C._dispatch_get_all_op_names())
    draw = random.Random(1)
    ended = 0
    for name in draw.sample([name for name in names if name.startswith("aten::")], 200):
        plan, _ = plan_of(add)
        base, _, overload = name.partition(".")
        plan.operators = [Operator(name=base, overload=overload)]
        try:
            run(add, X, X)
        except (etx_runtime.ExecutionError, etx_runtime.LoadError):
            ended += 1
    assert ended > 150
