# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from programs import Calls, counts, edge, fitted

INTS = torch.tensor([[-7, 7, 5, -5], [1 << 60, -(1 << 60), 2**53 + 1, 0]])
BY = torch.tensor([[3, -3, -2, 2], [-3, 3, 1 << 40, -1]])
ZERO = torch.tensor([[0.0, -0.0, 1.0, torch.nan]])
CASES = {
    "remainder.Tensor": (torch.remainder, (INTS, BY)),
    "remainder.Scalar": (lambda x: x % -3, (INTS,)),
    "fmod.Tensor": (torch.fmod, (INTS, BY)),
    "fmod.Scalar": (lambda x: x.fmod(-3), (INTS.to(torch.uint8),)),
    "div.Scalar_mode": (lambda x: x.div(-3, rounding_mode="trunc"), (INTS,)),
    "floor.default": (torch.ops.aten.floor, (INTS,)),
}


@pytest.mark.parametrize("name", CASES)
def test_integers_are_divided_as_integers(name):
    call, inputs = CASES[name]
    assert f"aten.{name}" in counts(edge(Calls(call), inputs))
    assert f"aten.{name}" not in counts(fitted(Calls(call), inputs))


def test_floor_division_by_zero_is_division():
    found = counts(fitted(Calls(torch.floor_divide), (ZERO, ZERO.flip(1))))
    assert found["aten.where.self"] == found["aten.div.Tensor"] == 1
