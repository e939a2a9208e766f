# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.passes.normalize.scalar_operands import ScalarOperands
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from programs import Calls, apply, assert_like_eager, core, counts

FUNCTIONS = {
    "add": lambda x: x + 3,
    "sub with alpha": lambda x: torch.sub(x, 3, alpha=2),
    "mul": lambda x: x * 0.5,
    "div": lambda x: x / 4,
    "floor div": lambda x: x // 2,
    "compare": lambda x: x > 0.5,
    "remainder": lambda x: x % 3,
    "power": lambda x: x**3,
}


@pytest.mark.parametrize("x", [torch.randn(4), torch.arange(4)], ids=["float", "int"])
def test_numbers_stay_numbers(x):
    module = Calls(lambda x: {name: function(x) for name, function in FUNCTIONS.items()})
    program = core(module, (x,))
    ScalarOperands().run(program)
    assert not any(name.endswith(".Tensor") for name in counts(program))
    assert len(list(program.graph.find_nodes(op="placeholder"))) == 1
    assert_like_eager(program, module, (x,))


def test_a_tensor_that_holds_one_number_becomes_it():
    module = Calls(lambda self, x: self.c * x, c=torch.tensor(2.5, dtype=torch.float64))
    program = core(module, (torch.randn(3),))
    apply(ScalarOperands(), program)
    assert counts(program) == {"aten.mul.Scalar": 1}
    RemoveDeadCode().run(program)
    assert not program.state_dict
    assert_like_eager(program, module, (torch.randn(3),))


def test_two_tensors_without_dimensions_promote_as_tensors():
    module = Calls(lambda self, x: self.c * x.sum(), c=torch.tensor(2.5, dtype=torch.float64))
    program = core(module, (torch.randn(3),))
    assert not ScalarOperands().run(program)
