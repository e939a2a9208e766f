# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.passes.fuse.linear_from_products import LinearFromProducts
from programs import Calls, assert_like_eager, core, counts, edge, refusals


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


STAYING = {
    "alpha or beta is not 1": lambda b, x, w: torch.addmm(b, x, w.t(), alpha=2),
    "the bias is not one number for each row of the weight": lambda b, x, w: torch.addmm(
        b[:1], x, w.t()
    ),
    "another operator reads the transposed matrix, which is computed": lambda b, x, w: (
        lambda t: (x @ t, t.exp())
    )((w * 2).t()),
}


@pytest.mark.parametrize("reason", STAYING)
def test_another_product_stays(reason):
    inputs = torch.randn(5), torch.randn(2, 3), torch.randn(5, 3)
    program = core(Calls(STAYING[reason]), inputs)
    assert refusals(LinearFromProducts(), program) == {reason}


def test_a_computed_matrix_is_read_transposed():
    module = Calls(lambda x, y: x @ (y * 2).t())
    inputs = torch.randn(2, 3), torch.randn(4, 3)
    program = edge(module, inputs)
    assert counts(program) == {"aten.mul.Scalar": 1, "aten.linear.default": 1}
    assert_like_eager(program, module, inputs)


def test_a_permutation_that_is_none():
    module = Calls(lambda self, x: x @ self.w.permute(0, 1), w=torch.randn(3, 3))
    program = edge(module, (torch.randn(2, 3),))
    assert_like_eager(program, module, (torch.randn(2, 3),))
