# SPDX-License-Identifier: BSD-3-Clause
"""cond, while_loop, map and scan, nested and with state."""

from __future__ import annotations

import torch
from running import operators, plan_of, run
from torch import nn
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, y):
        def positive(x, y):
            return torch.relu(self.linear(x)) + 1, y * 2

        def negative(x, y):
            return x.clone(), x - y

        a, b = torch.cond(x.sum() > 0, positive, negative, (x, y))
        return a * b, a, y


def test_cond():
    x, y = torch.randn(3, 4).abs(), torch.randn(3, 4)
    plan = plan_of(run(Branch(), (x, y), (-x, y), (x, y)).pte)
    kinds = [type(i.instr_args).__name__ for i in plan.chains[0].instructions]
    assert kinds.count("JumpFalseCall") == 2
    assert kinds.count("MoveCall") == 4


class Nested(nn.Module):
    def forward(self, x):
        def inner(x):
            return torch.cond(x.max() > 1, lambda x: x * 2, lambda x: x + 3, (x,))

        return torch.cond(x.sum() > 0, inner, lambda x: -x, (x,)) + x


def test_cond_in_cond():
    x = torch.full((3,), 0.5)
    run(Nested(), (x,), (4 * x,), (-x,), (x,))


class Fibonacci(nn.Module):
    def forward(self, n, x):
        def test(i, a, b):
            return i.sum() < n.sum()

        def body(i, a, b):
            return i + 1, b.clone(), a + b

        start = torch.zeros(1, dtype=torch.int64)
        i, a, b = while_loop(test, body, (start, x, x * 2))
        return a, b, i


class Swapping(nn.Module):
    def forward(self, n, x):
        def test(i, a, b):
            return i < n.sum()

        def body(i, a, b):
            return i + 1, b.clone(), a.clone()

        _, a, b = while_loop(test, body, (torch.zeros((), dtype=torch.int64), x, x * 2))
        return a, b


def test_while_loop_with_no_and_many_turns():
    x = torch.randn(3)
    calls = [(torch.tensor([n]), x) for n in (4, 0, 7, 1)]
    run(Fibonacci(), *calls)
    run(Swapping(), *calls)


class Counting(nn.Module):
    def forward(self, x):
        return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), (0, x))


def test_while_loop_over_an_integer():
    run(Counting(), (torch.randn(3),), (torch.randn(3),))


class Rows(nn.Module):
    def forward(self, xs, y):
        return map_rows(lambda x, y: (x * y + 1, x.sum()), xs, y)


def test_map():
    y = torch.randn(3)
    calls = [(torch.randn(4, 3), y) for _ in range(2)]
    names = operators(run(Rows(), *calls, checked=False).pte)
    assert "executorch_prim::et_copy_index.tensor" in names
    calls = [(torch.randn(n, 3), y) for n in (4, 9, 1, 2)]
    shapes = ({0: Dim("n", min=1, max=9)}, None)
    run(Rows(), *calls, dynamic_shapes=shapes, checked=False)


class Running(nn.Module):
    def forward(self, start, xs):
        def step(total, x):
            return total + x, (total * x, x.sum())

        return scan(step, start, xs, dim=0)


def test_scan():
    calls = [(torch.randn(3), torch.randn(4, 3)) for _ in range(2)]
    run(Running(), *calls, checked=False)


class LoopInBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.ones(3))

    def forward(self, x):
        def looped(x):
            def test(i, a):
                return a.sum() < 100

            def body(i, a):
                grown = torch.cond(i > 2, lambda a: a * 3, lambda a: a + 1, (a,))
                return i + 1, grown

            return while_loop(test, body, (torch.zeros((), dtype=torch.int64), x))[1]

        y = torch.cond(x.sum() > 0, looped, lambda x: x * 2, (x,))
        self.total.add_(y)
        return y - self.total


def test_loop_in_branch_in_loop_with_state():
    x = torch.rand(3) + 0.1
    run(LoopInBranch(), (x,), (-x,), (2 * x,), (x,))
