# SPDX-License-Identifier: BSD-3-Clause
import itertools

import pytest
import torch
from etx_exir.passes.normalize.set_dim_order import SetDimOrder
from etx_exir.passes.simplify.merge_copies import MergeCopies, holds
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from programs import Calls, apply, assert_bits, core, counts, edge, refusals

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]


def copied(function, x):
    program = core(Calls(function), (x,))
    SetDimOrder().run(program)
    apply(MergeCopies(), program)
    RemoveDeadCode().run(program)
    assert_bits(program, Calls(function), (x,))
    return counts(program)


def test_there_and_back_is_one_copy():
    x = torch.randn(3)
    assert copied(lambda x: x.double().float(), x) == {"etx_dim_order._clone_dim_order.default": 1}
    assert counts(edge(Calls(lambda x: x.double().float() + 1), (x,))) == {"aten.add.Scalar": 1}


def test_the_last_dtype_and_layout_decide():
    def function(x):
        return x.to(torch.float32).to(memory_format=torch.channels_last).to(torch.float64)

    found = copied(function, torch.randn(1, 2, 3, 4).half())
    assert found == {"etx_dim_order._to_dim_order_copy.default": 1}


@pytest.mark.parametrize(
    ("x", "between", "after"),
    [
        (torch.randn(3), torch.float16, torch.float32),
        (torch.tensor([1.5, -2.5]), torch.int32, torch.float32),
        (torch.tensor([300, -1]), torch.uint8, torch.int64),
        (torch.tensor([2**24 + 1]), torch.float32, torch.int64),
        (torch.tensor([300]), torch.float64, torch.int8),
        (torch.tensor([0.5]), torch.float64, torch.int32),
        (torch.tensor([0.5]), torch.bool, torch.float32),
    ],
)
def test_a_copy_that_loses_something_stays(x, between, after):
    program = core(Calls(lambda x: x.to(between).to(after)), (x,))
    SetDimOrder().run(program)
    (reason,) = refusals(MergeCopies(), program)
    assert "does not hold every number of" in reason


@pytest.mark.parametrize(("wide", "narrow"), list(itertools.product(DTYPES, DTYPES)))
def test_holds_says_what_conversions_do(wide, narrow):
    if narrow is torch.bool:
        numbers = torch.tensor([False, True])
    elif narrow.is_floating_point:
        info = torch.finfo(narrow)
        numbers = torch.tensor([info.max, info.min, info.smallest_normal, 1 + info.eps, 0.5])
    else:
        limits = torch.iinfo(narrow)
        numbers = torch.tensor([limits.min, limits.max, limits.max // 2 + 1, 1])
    numbers = numbers.to(narrow)
    if not holds(wide, narrow):
        return
    assert torch.equal(numbers.to(wide).to(narrow), numbers)
