# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.passes.normalize.roll_flat import RollFlat
from programs import Calls, apply, assert_like_eager, core, refusals

ROLL = torch.ops.aten.roll.default


def test_a_roll_of_all_elements_is_one_of_a_row():
    module, inputs = Calls(lambda x: x.roll(2)), (torch.randn(3, 4),)
    program = core(module, inputs)
    apply(RollFlat(), program)
    (call,) = program.graph.find_nodes(op="call_function", target=ROLL)
    assert call.args[1:] == ([2], [0])
    assert call.meta["val"].shape == (12,)
    assert_like_eager(program, module, inputs)


def test_one_symbolic_size_is_inferred():
    module, batch = Calls(lambda x: x.roll(2)), torch.export.Dim("batch", max=9)
    program = core(module, (torch.randn(3, 4),), (({0: batch},),))
    apply(RollFlat(), program)
    assert_like_eager(program, module, (torch.randn(5, 4),))


STAYING = {
    "dims": (lambda x: x.roll(2, 1), torch.randn(3, 4)),
    "no dimension": (lambda x: x.roll(2), torch.tensor(2.0)),
}


@pytest.mark.parametrize("name", STAYING)
def test_other_rolls_stay(name):
    function, x = STAYING[name]
    assert not RollFlat().run(core(Calls(function), (x,)))


def test_two_symbolic_sizes_stay():
    sizes = {0: torch.export.Dim("rows", max=9), 1: torch.export.Dim("columns", max=9)}
    program = core(Calls(lambda x: x.roll(2)), (torch.randn(3, 4),), ((sizes,),))
    assert refusals(RollFlat(), program) == {"more than one size is symbolic"}
