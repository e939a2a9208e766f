# SPDX-License-Identifier: BSD-3-Clause
import torch
from programs import Calls, counts, fitted

INTS = torch.tensor([[-7, 7, 5, -5], [1 << 60, -(1 << 60), 2**53 + 1, 0]])


def sums(function):
    return counts(fitted(Calls(function), (INTS,)))["aten.sum.dim_IntList"]


def test_sums_of_int64_are_split_and_those_of_masks_are_not():
    assert sums(lambda x: x.sum(1, keepdim=True)) == 2
    assert sums(lambda x: (x > 3).long().sum(0)) == 1
