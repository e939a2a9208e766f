# SPDX-License-Identifier: BSD-3-Clause
import torch
from programs import Calls, counts, fitted

INTS = torch.tensor([[-7, 7, 5, -5], [1 << 60, -(1 << 60), 2**53 + 1, 0]])


def sums(function):
    return counts(fitted(Calls(function), (INTS,)))["aten.sum.dim_IntList"]


def test_sums_of_int64_are_split_and_those_of_masks_are_not():
    assert sums(lambda x: x.sum(1, keepdim=True)) == 2
    assert sums(lambda x: (x > 3).long().sum(0)) == 1


def test_sums_of_float64_are_means():
    x = torch.tensor([[1e8, 1.1, -1e8], [1 / 3, 1e-9, -1 / 3]], dtype=torch.float64)
    program = fitted(Calls(lambda x: (x.sum(1), x.sum(), x.norm(dim=0))), (x,))
    assert counts(program)["aten.mean.dim"] == 3
    assert "aten.sum.dim_IntList" not in counts(program)


def test_no_sum_of_nothing_is_a_mean():
    program = fitted(Calls(lambda x: x.sum(0)), (torch.zeros(0, 3, dtype=torch.float64),))
    assert "aten.mean.dim" not in counts(program)
