# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.ir.constants import Constants
from etx_exir.ir.dim_order import dim_order_of
from etx_exir.passes.normalize.normalize_strides import NormalizeStrides
from programs import Calls, apply, assert_like_eager, core

IMAGE = torch.randn(1, 2, 3, 4)


def orders(program):
    return [dim_order_of(n.meta["val"]) for n in program.graph.nodes if n.op == "call_function"]


def test_strides_are_those_of_copies():
    program = core(Calls(lambda x: x.permute(0, 2, 1).relu()), (torch.randn(2, 3, 4),))
    apply(NormalizeStrides(), program)
    assert orders(program) == [(0, 1, 2)] * 2


def test_constants_are_stored_as_they_are_read():
    module = Calls(lambda self, x: x + self.w, w=torch.randn(4, 3).t())
    program = core(module, (torch.randn(3, 4),))
    apply(NormalizeStrides(), program)
    ((_, stored),) = Constants(program).items()
    assert stored.is_contiguous()
    assert_like_eager(program, module, (torch.randn(3, 4),))


def test_the_layout_of_an_input_is_kept():
    image = IMAGE.contiguous(memory_format=torch.channels_last)
    program = core(Calls(lambda x: x.relu()), (image,))
    assert not NormalizeStrides().run(program)
    assert orders(program) == [(0, 2, 3, 1)]
