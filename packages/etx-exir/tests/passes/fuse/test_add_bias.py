# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.passes.fuse.add_bias import AddBias
from programs import Calls, apply, assert_like_eager, core, counts, edge
from torch.nn import functional as F


def layer(x, b):
    return F.linear(x, torch.ones(4, 5), b)


@pytest.mark.parametrize("shape", [(), (1,), (1, 4), (2, 1), (2, 4), (3, 2, 4)], ids=str)
def test_a_bias_of_another_shape_is_added(shape):
    inputs = torch.randn(3, 2, 5)[: 3 if len(shape) == 3 else 1].squeeze(0), torch.randn(shape)
    program = edge(Calls(layer), inputs)
    assert counts(program)["aten.add.Tensor"] == 1
    assert_like_eager(program, Calls(layer), inputs)


def test_the_bias_of_a_keyword_is_added_too():
    module = Calls(lambda x, b: torch.ops.aten.linear.default(x, torch.ones(4, 5), bias=b))
    inputs = torch.randn(2, 5), torch.randn(1)
    program = core(module, inputs)
    apply(AddBias(), program)
    assert_like_eager(program, module, inputs)


@pytest.mark.parametrize("bias", [torch.randn(4), None], ids=["one a row", "none"])
def test_a_bias_that_kernels_take_stays(bias):
    module = Calls(lambda x: F.linear(x, torch.ones(4, 5), bias))
    assert not AddBias().run(core(module, (torch.randn(2, 5),)))
