# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.passes.normalize.scalar_operands import ScalarOperands
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from etx_exir.passes.simplify.remove_noops import RemoveNoops
from programs import Calls, apply, assert_like_eager, core, counts, edge
from torch import nn


def test_what_returns_its_input_is_dropped():
    def function(x):
        y = x.clone().detach().to(torch.float32).expand(2, 3).reshape(2, 3)[:]
        return (nn.functional.dropout(y, training=False) - 0) * 1

    module = Calls(function)
    program = core(module, (torch.randn(2, 3),))
    ScalarOperands().run(program)
    assert RemoveNoops().run(program)
    assert not RemoveNoops().run(program)
    assert counts(program) == {}
    assert_like_eager(program, module, (torch.randn(2, 3),))


def test_a_copy_that_changes_the_type_stays():
    program = core(Calls(lambda x: x.to(torch.float64)), (torch.randn(2),))
    assert not RemoveNoops().run(program)


def test_a_copy_of_state_before_its_update_stays():
    def step(self, x):
        before = self.n.clone()
        self.n.add_(x)
        return before

    module = Calls(step, n=torch.zeros(2))
    program = edge(module, (torch.ones(2),))
    assert_like_eager(program, module, (torch.ones(2),), (torch.ones(2),))
    assert sum("clone" in name for name in counts(program)) == 1


def test_reductions_over_single_elements():
    module = Calls(lambda x, y: (x.sum(0), y.sum(1, keepdim=True), y.amax(0)))
    inputs = torch.tensor(2.0), torch.randn(3, 1)
    program = core(module, inputs)
    apply(RemoveNoops(), program)
    assert counts(program) == {"aten.add.Scalar": 2, "aten.amax.default": 1}
    assert_like_eager(program, module, inputs)
    whole = torch.tensor(2), torch.randint(5, (3, 1))
    assert set(counts(edge(module, whole))) == {"aten.amax.default"}


def test_an_average_of_single_elements_with_a_divisor_stays():
    def function(x):
        plane = nn.functional.avg_pool2d(x, 1, divisor_override=4)
        return plane, nn.functional.avg_pool3d(x[None], (1, 2, 2))

    module = Calls(function)
    inputs = (torch.randn(2, 4, 4),)
    for program in (core(module, inputs), edge(module, inputs)):
        RemoveNoops().run(program)
        assert_like_eager(program, module, inputs)


def test_complex_numbers_of_parts_and_back():
    both = Calls(lambda x: torch.view_as_real(torch.view_as_complex(x)) * 2)
    program = core(both, (torch.randn(3, 2),))
    RemoveNoops().run(program)
    RemoveDeadCode().run(program)
    assert counts(program) == {"aten.mul.Tensor": 1}
    assert_like_eager(program, both, (torch.randn(3, 2),))
