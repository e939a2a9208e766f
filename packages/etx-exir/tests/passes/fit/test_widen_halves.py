# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from programs import Calls, counts, edge, fitted

HALF = torch.randn(4, 300).half() + 3
ZERO = torch.tensor([[0.0, -0.0, 1.0, torch.nan]])
CASES = {
    "var.correction": lambda x: x.var(1),
    "cumsum.default": lambda x: x.cumsum(1),
}


@pytest.mark.parametrize("name", CASES)
def test_halves_are_added_in_float32(name):
    after = counts(fitted(Calls(CASES[name]), (HALF,)))
    assert after[f"aten.{name}"] == 1
    assert after["etx_dim_order._to_dim_order_copy.default"] == 2


def test_what_is_multiplied_by_zero_is_not_added():
    module = Calls(lambda x, y: torch.addmm(x, y, y, beta=0))
    inputs = ZERO, torch.randn(4, 4)
    assert "aten.addmm.default" in counts(edge(module, inputs))
    assert "aten.addmm.default" not in counts(fitted(module, inputs))
