# SPDX-License-Identifier: BSD-3-Clause
import torch
from programs import Calls, assert_like_eager, counts, edge


def test_products_with_a_transposed_weight_are_linear():
    module = Calls(
        lambda self, x: torch.addmm(self.b, x @ self.w.t(), self.v.t()),
        w=torch.randn(4, 3),
        v=torch.randn(5, 4),
        b=torch.randn(5),
    )
    program = edge(module, (torch.randn(2, 3),))
    assert counts(program) == {"aten.linear.default": 2}
    assert_like_eager(program, module, (torch.randn(2, 3),))


def test_a_weight_in_the_order_of_mm_stays():
    module = Calls(lambda self, x: x @ self.w, w=torch.randn(3, 4))
    assert counts(edge(module, (torch.randn(2, 3),))) == {"aten.mm.default": 1}
