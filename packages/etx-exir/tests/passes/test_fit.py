# SPDX-License-Identifier: BSD-3-Clause
"""What is respelled for ExecuTorch's kernels gives what eager gives, without what they miss."""

import pytest
import torch
from etx_exir.errors import LoweringError
from etx_exir.lower.lower import fit
from etx_exir.target import load_target
from programs import Calls, assert_like_eager, counts, edge

LAST = torch.channels_last
IMAGE = torch.randn(2, 4, 3, 3)
INTS = torch.tensor([[-7, 7, 5, -5], [1 << 60, -(1 << 60), 2**53 + 1, 0]])
BY = torch.tensor([[3, -3, -2, 2], [-3, 3, 1 << 40, -1]])
HALF = torch.randn(4, 300).half() + 3
ZERO = torch.tensor([[0.0, -0.0, 1.0, torch.nan]])
CASES = {
    "remainder.Tensor": (torch.remainder, (INTS, BY)),
    "remainder.Scalar": (lambda x: x % -3, (INTS,)),
    "fmod.Tensor": (torch.fmod, (INTS, BY)),
    "fmod.Scalar": (lambda x: x.fmod(-3), (INTS.to(torch.uint8),)),
    "div.Scalar_mode": (lambda x: x.div(-3, rounding_mode="trunc"), (INTS,)),
    "floor.default": (torch.ops.aten.floor, (INTS,)),
    "pow.Tensor_Scalar": (lambda x: (x**0, x**1, x**3, x**39, (x > 3) ** 5), (INTS,)),
    "var.correction": (lambda x: x.var(1), (HALF,)),
    "cumsum.default": (lambda x: x.cumsum(1), (HALF,)),
    "addmm.default": (lambda x, y: torch.addmm(x, y, y, beta=0), (ZERO, torch.randn(4, 4))),
}
WIDE = ("var.correction", "cumsum.default")


def fitted(call, inputs, shapes=None):
    module = Calls(call)
    program = fit(edge(module, inputs, shapes), load_target("executorch"))
    assert_like_eager(program, module, inputs)
    return program


@pytest.mark.parametrize("name", CASES)
def test_what_differs_there_is_spelled_with_what_does_not(name):
    call, inputs = CASES[name]
    before, after = counts(edge(Calls(call), inputs)), counts(fitted(call, inputs))
    assert f"aten.{name}" in before
    assert (f"aten.{name}" in after) == (name in WIDE)
    if name in WIDE:
        assert after["etx_dim_order._to_dim_order_copy.default"] == 2


def test_floor_division_by_zero_is_division():
    found = counts(fitted(torch.floor_divide, (ZERO, ZERO.flip(1))))
    assert found["aten.where.self"] == found["aten.div.Tensor"] == 1


def test_sums_of_int64_are_split_and_those_of_masks_are_not():
    assert counts(fitted(lambda x: x.sum(1, keepdim=True), (INTS,)))["aten.sum.dim_IntList"] == 2
    assert counts(fitted(lambda x: (x > 3).long().sum(0), (INTS,)))["aten.sum.dim_IntList"] == 1


def test_shifts_are_bound_unless_their_counts_are_known():
    shift = torch.bitwise_left_shift
    assert "aten.where.self" in counts(fitted(shift, (BY, INTS % 99)))
    held = Calls(lambda self, x: shift(x, self.n), n=torch.arange(4))
    program = fit(edge(held, (BY,)), load_target("executorch"))
    assert "aten.where.self" not in counts(program)
    right = fitted(lambda x: torch.bitwise_right_shift(x, 70), (BY,))
    (node,) = right.graph.find_nodes(
        op="call_function", target=torch.ops.aten.bitwise_right_shift.Tensor_Scalar
    )
    assert node.args[1] == 63


def test_numbers_beside_halves_are_rounded():
    program = fitted(lambda x: (x == 0.1, x > 1e6), (HALF * 0 + 0.1,))
    (node,) = program.graph.find_nodes(op="call_function", target=torch.ops.aten.eq.Scalar)
    assert node.args[1] == torch.tensor(0.1).half().item()


def test_joined_tensors_are_of_one_dtype():
    program = fitted(lambda x, i: torch.cat([x, i]), (torch.randn(2, 4).double(), INTS))
    (node,) = program.graph.find_nodes(op="call_function", target=torch.ops.aten.cat.default)
    assert {each.meta["val"].dtype for each in node.args[0]} == {torch.float64}


@pytest.mark.parametrize(
    ("call", "copies"),
    [
        (lambda x, y: y.relu() * y, 0),
        (lambda x, y: x + y, 1),
        (lambda x, y: y + y[:1, :1, 0, 0].view(1), 3),
        (lambda x, y: y.softmax(1), 1),
        (lambda x, y: torch.cat([y, y.relu()]), 3),
        (lambda x, y: y.topk(2, 1)[0], 1),
    ],
)
def test_calls_have_the_dim_orders_that_kernels_take(call, copies):
    found = counts(fitted(call, (IMAGE, IMAGE.contiguous(memory_format=LAST))))
    assert found.get("etx_dim_order._to_dim_order_copy.default", 0) == copies


def test_inputs_of_other_orders_are_refused():
    program = edge(Calls(lambda x: x + 1), (torch.randn(3, 4).t(),))
    with pytest.raises(LoweringError, match=r"input 'args_0' has dim order \[1, 0\]"):
        fit(program, load_target("executorch"))
