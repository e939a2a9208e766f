# SPDX-License-Identifier: BSD-3-Clause
import torch
from programs import Calls, counts, edge, fitted

INTS = torch.tensor([[-7, 7, 5, -5], [1 << 60, -(1 << 60), 2**53 + 1, 0]])


def test_powers_of_integers_are_products():
    module = Calls(lambda x: (x**0, x**1, x**3, x**39, (x > 3) ** 5))
    assert counts(edge(module, (INTS,)))["aten.pow.Tensor_Scalar"]
    assert "aten.pow.Tensor_Scalar" not in counts(fitted(module, (INTS,)))


def test_powers_of_floats_stay():
    module = Calls(lambda x: x**3)
    assert counts(fitted(module, (torch.randn(4),))) == {"aten.pow.Tensor_Scalar": 1}
