# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.passes.simplify.forward_parts import ForwardParts
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from programs import Calls, apply, assert_bits, assert_like_eager, core, counts, edge

FUNCTIONS = {
    "slice of cat": lambda x, y: torch.cat([x, y, x], 1)[:, 3:6] * 2,
    "split of cat": lambda x, y: torch.cat([x, y]).chunk(2)[1].sin(),
    "select of stack": lambda x, y: torch.stack([x, y], -1)[..., 1] + x,
    "unbind of stack": lambda x, y: sum(torch.stack([x, y]).unbind()),
    "step of a sequence": lambda x, y: torch.cat([x, y]).view(2, 2, 3)[-1] * 2,
    "cat of chunks": lambda x, y: torch.cat(x.chunk(2), 0) + y,
    "stack of parts": lambda x, y: torch.stack([x[0], x[1]]) * y,
    "cat of slices": lambda x, y: torch.cat([x[:, :1], x[:, 1:]], 1) * y,
}
MOVING = ("cat", "stack", "slice", "split", "select", "unbind", "permute", "transpose", "t_copy")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_was_put_together_is_read_before(name):
    module, inputs = Calls(FUNCTIONS[name]), (torch.randn(2, 3), torch.randn(2, 3))
    program = core(module, inputs)
    apply(ForwardParts(), program)
    RemoveDeadCode().run(program)
    assert not any(f".{word}" in op for op in counts(program) for word in MOVING)
    assert_bits(program, module, inputs)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: torch.cat([x, y])[1:3] * 2,
        lambda x, y: torch.cat([x.t(), y.t()])[2:5] * 2,
        lambda x, y: torch.cat(x.chunk(2)[::-1]) + y,
        lambda x, y: torch.cat([x[:1], y[1:]]) + y,
        lambda x, y: torch.cat([x[:1], x[:1]]) + y,
        lambda x, y: torch.cat([x, y.double()])[:2] * 2,
    ],
    ids=["of two", "across", "turned", "of two sources", "twice", "promoted"],
)
def test_what_is_not_one_operand_in_order_stays(function):
    program = core(Calls(function), (torch.randn(2, 3), torch.randn(2, 3)))
    assert not ForwardParts().run(program)


def test_state_is_not_returned_in_place_of_a_copy():
    def step(self, x):
        before = torch.cat([self.n, x])[:2]
        self.n.add_(1)
        return before

    module = Calls(step, n=torch.zeros(2))
    program = edge(module, (torch.ones(2),))
    assert any("cat" in name for name in counts(program))
    assert_like_eager(program, module, (torch.ones(2),), (torch.ones(2),))


def test_the_last_step_of_a_recurrent_layer():
    module = torch.nn.LSTM(4, 5, batch_first=True)
    x = torch.randn(1, 3, 4)
    program = edge(Calls(lambda self, x: module(x)[0][:, -1] + self.zero, zero=torch.ones(1)), (x,))
    assert not any("cat" in name or "select" in name for name in counts(program))
