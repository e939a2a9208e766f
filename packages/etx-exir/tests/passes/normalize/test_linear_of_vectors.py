# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.passes.normalize.linear_of_vectors import LinearOfVectors
from programs import Calls, apply, assert_like_eager, core
from torch.nn import functional as F

HELD = {"w": torch.randn(4, 3), "b": torch.randn(4)}
LINEAR = torch.ops.aten.linear.default


@pytest.mark.parametrize("biased", [True, False], ids=["bias", "no bias"])
def test_a_linear_layer_of_a_vector_is_one_of_a_row(biased):
    module = Calls(lambda self, x: F.linear(x, self.w, self.b if biased else None), **HELD)
    inputs = (torch.randn(3),)
    program = core(module, inputs)
    apply(LinearOfVectors(), program)
    (call,) = program.graph.find_nodes(op="call_function", target=LINEAR)
    assert call.meta["val"].shape == (1, 4)
    assert_like_eager(program, module, inputs)


def test_a_linear_layer_of_rows_stays():
    module = Calls(lambda self, x: F.linear(x, self.w), **HELD)
    assert not LinearOfVectors().run(core(module, (torch.randn(1, 3),)))
