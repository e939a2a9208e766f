# SPDX-License-Identifier: BSD-3-Clause
"""What an equation of real numbers hides: signs of zeros, infinities, NaN, promotion of dtypes."""

import pytest
import torch
from etx_exir.passes.simplify.drop_expands import DropExpands
from etx_exir.passes.simplify.fold_constants import FoldConstants
from etx_exir.passes.simplify.remove_noops import RemoveNoops
from programs import Calls, assert_bits, core, counts, edge
from running import run
from torch.nn import functional as F

SPECIAL = torch.tensor([-0.0, 0.0, 1.5, -2.0, torch.inf, -torch.inf, torch.nan])
FUNCTIONS = {
    "x + 0": lambda x: x + 0,
    "x + -0.0": lambda x: x + -0.0,
    "x - 0": lambda x: x - 0,
    "x - -0.0": lambda x: x - -0.0,
    "x + 0 y": lambda x: torch.add(x, 3, alpha=0),
    "0 - x": lambda x: 0 - x,
    "x * 1": lambda x: x * 1,
    "x * 0": lambda x: x * 0,
    "x / 1": lambda x: x / 1,
    "x ** 0": lambda x: x**0,
    "x ** 1": lambda x: x**1,
    "x ** 2": lambda x: x**2,
    "x ** 0.5": lambda x: x**0.5,
    "x ** -0.5": lambda x: x**-0.5,
    "x ** -1": lambda x: x**-1,
    "x - x": lambda x: x - x,
    "x / x": lambda x: x / x,
    "x == x": lambda x: x == x,
    "sum of one": lambda x: x[:, None].sum(1, keepdim=True),
    "mean of one": lambda x: x[:, None].mean(1, keepdim=True),
    "average of one": lambda x: F.avg_pool2d(x[None, None, None], 1),
    "widened": lambda x: x.double().float(),
    "narrowed": lambda x: x.half().float(),
    "padded by nothing": lambda x: F.pad(x, (0, 0)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_numbers(name):
    module = Calls(FUNCTIONS[name])
    assert_bits(edge(module, (SPECIAL,)), module, (SPECIAL,))


def test_what_adds_nothing_to_integers_is_dropped():
    module, x = Calls(lambda x: (x + 0) - 0), torch.tensor([-3, 0, 5])
    program = edge(module, (x,))
    assert counts(program) == {}
    assert_bits(program, module, (x,))


CONSTANTS = {
    "integers and float64": (torch.arange(3), torch.tensor(2.5, dtype=torch.float64)),
    "booleans and int32": (torch.tensor([True, False]), torch.tensor(3, dtype=torch.int32)),
    "int8 and bool": (torch.arange(3, dtype=torch.int8), torch.tensor(True)),
    "int32 and a large int64": (torch.arange(3, dtype=torch.int32), torch.tensor(2**33 + 1)),
    "half and float64": (torch.ones(3, dtype=torch.half), torch.tensor(0.1, dtype=torch.float64)),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_promotes_as_a_tensor(name):
    x, constant = CONSTANTS[name]
    module = Calls(lambda self, x: (x * self.c, x + self.c, x == self.c), c=constant)
    assert_bits(edge(module, (x,)), module, (x,))


def test_an_expanded_number_promotes_as_a_tensor():
    module = Calls(lambda x, y: x + y.expand(3, 2))
    inputs = torch.ones(3, 2, dtype=torch.half), torch.tensor(1.0)
    program = core(module, inputs)
    assert not DropExpands().run(program)
    assert_bits(program, module, inputs)


@pytest.mark.parametrize("factor", [torch.inf, torch.nan, 1e38, 1e-44, 0.0])
def test_a_scale_that_overflows_or_vanishes_stays(factor):
    weight = torch.tensor([[10.0, 0.0], [2.0, 3.0]])
    module = Calls(lambda self, x: F.linear(x, self.w) * factor, w=weight)
    x = torch.tensor([[1e-3, 2e-3]])
    assert_bits(edge(module, (x,)), module, (x,))


def test_memory_that_nothing_wrote_is_zero():
    module = Calls(lambda x: (x, torch.empty(100), torch.empty_like(torch.zeros(3))))
    program = core(module, (torch.ones(2),))
    FoldConstants().run(program)
    assert counts(program) == {"aten.full.default": 1}
    assert not any(tensor.any() for tensor in program.module(check_guards=False)(torch.ones(2))[1:])


def test_a_copy_of_an_input_that_is_written_stays():
    def write(x):
        before = x.clone()
        x.add_(1)
        return before

    program = core(Calls(write), (torch.ones(2),))
    assert not RemoveNoops().run(program)


def before_the_write(self, x):
    """Values of state before it is written, each by another copy that passes see through."""
    branch = torch.cond(x.sum() > 0, lambda n: n.clone(), lambda n: n * 2, (self.n,))
    joined = torch.cat([self.n.view(1, 2), x.view(1, 2)])[0]
    turned = self.n.view(2, 1).permute(1, 0).reshape(2)
    values = branch, joined, turned, self.n[:1], self.n.double().float()
    self.n.add_(x)
    return values


def test_copies_of_state_are_of_its_value_before_the_write():
    calls = [(torch.ones(2),), (torch.ones(2),), (-torch.ones(2),), (torch.ones(2),)]
    run(Calls(before_the_write, n=torch.ones(2)), *calls)
