# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from etx_exir.passes.simplify.share_constants import ShareConstants
from programs import Calls, Masked, apply, assert_like_eager, core
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.output = nn.Linear(4, 10, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, x):
        return self.output(self.embedding(x))


def held(program):
    RemoveDeadCode().run(program)
    return len(program.state_dict) + len(program.constants)


def test_a_tied_weight_is_stored_once():
    module, x = Tied(), torch.tensor([[1, 2]])
    program = core(module, (x,))
    ShareConstants().run(program)
    assert held(program) == 1
    assert_like_eager(program, module, (x,))


def test_equal_constants_are_stored_once():
    module = Masked(persistent=False)
    program = core(module, (torch.randn(8),))
    apply(ShareConstants(), program)
    assert held(program) == 1
    assert_like_eager(program, module, (torch.randn(8),))


def test_equal_weights_stay_two():
    program = core(Masked(persistent=True), (torch.randn(8),))
    assert not ShareConstants().run(program)
    module = nn.Sequential(nn.LayerNorm(4), nn.LayerNorm(4))
    assert not ShareConstants().run(core(module, (torch.randn(4),)))


def test_zeros_of_different_sign_differ():
    module = Calls(lambda self, x: x * self.a + self.b, a=torch.zeros(2), b=-torch.zeros(2))
    assert not ShareConstants().run(core(module, (torch.randn(2),)))
