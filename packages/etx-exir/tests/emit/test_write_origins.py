# SPDX-License-Identifier: BSD-3-Clause
"""What is copied back at the end of a method has the module and the line that wrote it."""

from __future__ import annotations

import inspect
import json

import pytest
import torch
from etx_exir import to_edge
from etx_schema import KernelCall
from torch import nn


class Whole(nn.Module):
    def forward(self, state, x):
        state.copy_(x)


class Twice(nn.Module):
    def forward(self, state, x):
        state.add_(x)
        state.copy_(x)


class Part(nn.Module):
    def forward(self, state, x):
        state[1:, :2] = x[1:, :2]


class View(nn.Module):
    def forward(self, state, x):
        state.view(2, 8).t()[0].copy_(x.view(2, 8)[:, 0])


class Item(nn.Module):
    def forward(self, state, x):
        state.split(1)[1].copy_(x[:1])


class Expanded(nn.Module):
    def forward(self, state, x):
        state.copy_(x[0])


class WithoutGradients(nn.Module):
    def forward(self, state, x):
        with torch.no_grad():
            state.copy_(x)


KINDS = (Whole, Twice, Part, View, Item, Expanded, WithoutGradients)


class Net(nn.Module):
    """Writes to state or to its input, and returns both as they are."""

    def __init__(self, kind, is_input):
        super().__init__()
        self.write, self.is_input = kind(), is_input
        self.register_buffer("state", torch.ones(4, 4))

    def forward(self, x, y):
        state = y if self.is_input else self.state
        before = state * 2
        self.write(state, x)
        return before, state


def last_line(function):
    lines, first = inspect.getsourcelines(function)
    return f"{__name__.rpartition('.')[2]}.py:{first + len(lines) - 1}"


@pytest.mark.parametrize("is_input", [False, True], ids=["state", "input"])
@pytest.mark.parametrize("kind", KINDS)
def test_copies_lead_to_the_last_writer(kind, is_input):
    inputs = (torch.rand(4, 4), torch.rand(4, 4))
    program = torch.export.export(Net(kind, is_input), inputs)
    pte = to_edge(program).to_executorch().pte_file
    (plan,) = pte.program.execution_plan
    rows = json.loads(bytes(pte.named_data["etx/debug"].data))["forward"]["instructions"]
    names = [
        f"{plan.operators[step.instr_args.op_index].name}"
        for step in plan.chains[0].instructions
        if isinstance(step.instr_args, KernelCall)
    ]
    assert len(names) == len(rows)
    known = [row and (row["source"] or row["module"]) for row in rows]
    assert all(known), list(zip(names, rows, strict=True))
    copies = [row for name, row in zip(names, rows, strict=True) if name == "aten::copy_"]
    line = last_line(kind.forward)
    assert {(row["module"], row["source"]) for row in copies} <= {("write", line)}
    assert copies or any(row["source"] == line for row in rows)
