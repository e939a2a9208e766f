# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.passes.simplify.drop_expands import DropExpands
from programs import Calls, apply, assert_like_eager, core, counts, edge, refusals

EXPAND = "aten.expand_copy.default"


def test_the_small_operand_is_read():
    module = Calls(lambda x: x / x.sum(-1, keepdim=True).expand_as(x))
    program = edge(module, (torch.rand(3, 4),))
    assert EXPAND not in counts(program)
    assert_like_eager(program, module, (torch.rand(3, 4),))


def test_of_two_expanded_operands_both_stay():
    module = Calls(lambda x, y: x.expand(3, 4) + y.expand(3, 4))
    assert not DropExpands().run(core(module, (torch.rand(4), torch.rand(3, 1))))


def test_without_its_dimensions_an_operand_would_promote_like_a_number():
    x, y = torch.rand(3, dtype=torch.float16), torch.tensor(0.5)
    assert refusals(DropExpands(), core(Calls(lambda x, y: x + y.expand(3)), (x, y))) == {
        "without its dimensions the operand would promote like a number"
    }
    module = Calls(lambda x, y: x + y.expand(3))
    alike = core(module, (x.float(), y))
    apply(DropExpands(), alike)
    assert_like_eager(alike, module, (x.float(), y))
