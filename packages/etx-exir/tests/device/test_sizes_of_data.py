# SPDX-License-Identifier: BSD-3-Clause
"""What comes after a result whose size is known only in a run: eager's numbers, on the device."""

from __future__ import annotations

import pytest
import torch
from etx_exir import to_edge
from promise import executed, loaded, same
from torch import nn

MATRIX, TABLE = torch.randn(2, 3), torch.randn(8, 3)
FOLLOWED = {
    "itself": lambda y: y,
    "x + 1": lambda y: y + 1,
    "1 - x": lambda y: 1 - y,
    "x * 2.5": lambda y: y * 2.5,
    "x == 1": lambda y: y == 1,
    "x + x": lambda y: y + y,
    "clamp": lambda y: y.clamp(0, 2),
    "relu": torch.relu,
    "exp": lambda y: y.float().exp(),
    "pow": lambda y: y**2,
    "float": lambda y: y.float(),
    "clone": lambda y: y.clone(),
    "sum": lambda y: y.sum(),
    "sum 0": lambda y: y.sum(0),
    "sum last": lambda y: y.sum(-1, keepdim=True),
    "mean 0": lambda y: y.float().mean(0),
    "any": lambda y: y.any(),
    "cumsum": lambda y: y.cumsum(0),
    "flip": lambda y: y.flip(0),
    "unsqueeze 0": lambda y: y.unsqueeze(0),
    "unsqueeze last": lambda y: y.unsqueeze(-1),
    "reshape": lambda y: y.reshape(-1),
    "flatten": lambda y: y.flatten(),
    "cat": lambda y: torch.cat([y, y]),
    "cat last": lambda y: torch.cat([y, y], -1),
    "stack": lambda y: torch.stack([y, y]),
    "expand": lambda y: y.unsqueeze(0).expand(2, *([-1] * y.dim())),
    "repeat": lambda y: y.repeat(2, *([1] * (y.dim() - 1))),
    "where": lambda y: torch.where(y > 1, y, 0),
    "ones_like": torch.ones_like,
    "softmax": lambda y: y.float().softmax(0),
    "sort": lambda y: torch.sort(y, dim=0, stable=True)[0],
    "embedding": lambda y: nn.functional.embedding(y.long().clamp(0, 7), TABLE),
    "contiguous": lambda y: y.contiguous(),
    "squeeze": lambda y: y.squeeze(),
    "squeeze 0": lambda y: y.squeeze(0),
    "two": lambda y: (y + 1, y * y),
}
OF_MATRICES = {
    "transpose": lambda y: y.t(),
    "transposed copy": lambda y: y.t().contiguous(),
    "permute": lambda y: y.permute(1, 0) + 1,
    "column": lambda y: y[:, 0],
    "select": lambda y: y.select(1, 1),
    "columns": lambda y: y[:, :1],
    "unbind": lambda y: y.unbind(1),
    "matmul": lambda y: y.float() @ MATRIX,
    "linear": lambda y: nn.functional.linear(y.float(), MATRIX.t()),
    "layer_norm": lambda y: nn.functional.layer_norm(y.float(), (2,)),
    "pad": lambda y: nn.functional.pad(y, (1, 0)),
    "index_select": lambda y: y.index_select(1, torch.tensor([1, 0])),
}


class After(nn.Module):
    def __init__(self, source, followed):
        super().__init__()
        self.source, self.followed = source, followed

    def forward(self, x):
        return self.followed(self.source(x))


class Refused(nn.Module):
    """Eager refuses what it computes from constants, which lowering leaves alone."""

    def __init__(self):
        super().__init__()
        self.register_buffer("flags", torch.ones(3, dtype=torch.bool))

    def forward(self, x):
        return x + 1, torch.topk(self.flags, 2)[1]


def test_what_eager_refuses_is_lowered():
    program = torch.export.export(Refused(), (torch.ones(2),))
    edge = to_edge(program).exported_program()
    assert any("topk" in str(node.target) for node in edge.graph.nodes)


class Expanded(nn.Module):
    """A constant of one element, which no stride is of."""

    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.ones((), dtype=torch.float64).expand(1, 1))

    def forward(self, x):
        return x * self.one


def test_an_expanded_number_is_stored():
    x = torch.randn(2, 3, dtype=torch.float64)
    file = to_edge(torch.export.export(Expanded(), (x,))).to_executorch()
    (result,) = executed(loaded(file.buffer), (x,))
    same(result, x)


def places(x):
    return (x > 0.25).nonzero()


def selected(x):
    return x.masked_select(x > 0.25)


CASES = [(places, name, f) for name, f in (FOLLOWED | OF_MATRICES).items()]
CASES += [(selected, name, f) for name, f in FOLLOWED.items()]


@pytest.mark.parametrize(
    ("source", "followed"),
    [(source, f) for source, _, f in CASES],
    ids=[f"{source.__name__} {name}" for source, name, _ in CASES],
)
def test_a_size_that_only_a_run_knows(source, followed):
    torch.manual_seed(0)
    model = After(source, followed)
    program = torch.export.export(model, (torch.randn(3, 4),))
    method = loaded(to_edge(program).to_executorch().buffer)
    for x in (torch.randn(3, 4), torch.full((3, 4), -1.0), torch.ones(3, 4)):
        expected = model(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for actual, value in zip(executed(method, (x,)), expected, strict=True):
            same(actual, value.contiguous())
