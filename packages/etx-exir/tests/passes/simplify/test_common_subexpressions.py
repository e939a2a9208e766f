# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.passes.simplify.common_subexpressions import CommonSubexpressions
from programs import Calls, apply, assert_like_eager, core, counts


def test_equal_expressions_are_computed_once():
    module = Calls(lambda x: x.exp() * 2 + x.exp().sin() + x.exp() * 2)
    program = core(module, (torch.randn(3),))
    apply(CommonSubexpressions(), program)
    assert counts(program) == {
        "aten.exp.default": 1,
        "aten.mul.Tensor": 1,
        "aten.sin.default": 1,
        "aten.add.Tensor": 2,
    }
    assert_like_eager(program, module, (torch.randn(3),))


def test_arguments_of_different_types_differ():
    program = core(Calls(lambda x: (x + 1, x + 1.0, x + True)), (torch.arange(3),))
    assert not CommonSubexpressions().run(program)


def test_random_numbers_differ():
    program = core(Calls(lambda x: torch.rand(3) - torch.rand(3) + x), (torch.randn(3),))
    assert not CommonSubexpressions().run(program)
