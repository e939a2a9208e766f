# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.passes.normalize.expand_powers import ExpandPowers
from programs import Calls, assert_like_eager, core, counts, edge

NAMES = {2: "mul.Tensor", 0.5: "sqrt.default", -0.5: "rsqrt.default", -1: "reciprocal.default"}


@pytest.mark.parametrize("exponent", NAMES)
def test_power_has_an_operator_of_its_own(exponent):
    module = Calls(lambda x: x**exponent)
    program = edge(module, (torch.rand(3) + 0.1,))
    assert counts(program) == {f"aten.{NAMES[exponent]}": 1}
    assert_like_eager(program, module, (torch.rand(3) + 0.1,))


STAYING = {
    "another exponent": (lambda x: x**3, torch.rand(3)),
    "promoted": (lambda x: x**0.5, torch.arange(3)),
    "of a number": (lambda x: 2**x, torch.rand(3)),
}


@pytest.mark.parametrize("name", STAYING)
def test_power_stays(name):
    function, x = STAYING[name]
    assert not ExpandPowers().run(core(Calls(function), (x,)))
