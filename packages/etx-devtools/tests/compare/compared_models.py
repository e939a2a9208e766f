# SPDX-License-Identifier: BSD-3-Clause
"""Small models that are compared with their files: name, module, arguments, dynamic shapes."""

from __future__ import annotations

import warnings
from functools import cache

import torch
from etx_exir import to_edge
from etx_schema import serialize_pte
from functorch.experimental import control_flow
from torch import nn
from torch._higher_order_ops.scan import scan


class Convolutions(nn.Module):
    """Batch norms that are folded, a residual, a pool, a classifier."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8))
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 4)
        for norm in (self.stem[1], self.norm):
            norm.running_mean.uniform_(-1, 1)
            norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        y = nn.functional.relu6(self.stem(x))
        y = y + torch.sigmoid(self.norm(self.depthwise(y)))
        return self.head(nn.functional.adaptive_avg_pool2d(y, 1).flatten(1)).softmax(-1)


class Transformer(nn.Module):
    """Attention whose scale is folded, layer norms, an embedding."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")

    def forward(self, ids):
        return self.block(self.embedding(ids) * 4.0).mean(1)


class Steps(nn.Module):
    """A GRU as the operators of its steps."""

    def __init__(self):
        super().__init__()
        self.of_input, self.of_state = nn.Linear(6, 15), nn.Linear(5, 15)

    def forward(self, x):
        state, found = x.new_zeros(1, 5), []
        for step in self.of_input(x[0]).split(1):
            gates = zip(step.chunk(3, 1), self.of_state(state).chunk(3, 1), strict=True)
            (r, of_r), (z, of_z), (n, of_n) = gates
            new = (n + of_n * (of_r + r).sigmoid()).tanh()
            state = (state - new) * (of_z + z).sigmoid() + new
            found.append(state)
        return torch.cat(found)[None], state[None]


class Recurrent(nn.Module):
    """Parts and joins."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        y, last = self.cell(x)
        return torch.cat([y, y.flip(1)], -1), last


class Branch(nn.Module):
    """One of two graphs runs."""

    def forward(self, x):
        y = x * 2
        return torch.cond(y.sum() > 0, lambda y: y.sin() * y, lambda y: y.cos() - 1, (y,))


class Counter(nn.Module):
    """A buffer that changes, and one that is written in part."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.register_buffer("rows", torch.zeros(4, 3))

    def forward(self, x):
        self.seen += x
        self.rows[1] = self.seen * 2
        return self.rows.exp() + self.seen.sum()


class Nested(nn.Module):
    """Inputs in dicts and tuples."""

    def forward(self, pair, named):
        a, b = pair
        return {"sum": a - named["y"] / 3, "product": torch.matmul(a, b.t()).tanh()}


class Loop(nn.Module):
    """A body that runs several times."""

    def forward(self, x):
        y = x + 1
        return torch.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y.sin()), (0, y))[1] * 2


class Counted(nn.Module):
    """A loop that begins with an input, in a loop, as often as an input says."""

    def forward(self, x, n):
        def inner(i, y):
            return i + 1, y.sin() + 1

        def outer(i, y):
            return i + 1, torch.while_loop(lambda i, _: i < 2, inner, (0, y))[1].cos()

        return torch.while_loop(lambda i, _: i < n, outer, (torch.zeros((), dtype=torch.long), x))


class Rows(nn.Module):
    """A scan over what a map returned, row by row."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x, y):
        mapped = control_flow.map(lambda row, y: torch.tanh(self.layer(row)) * y, x, y)
        return scan(lambda c, row: (torch.sigmoid(c) + row, c * 2), y.sin(), mapped)


def rows():
    torch.manual_seed(0)
    size = torch.export.Dim("batch", min=2, max=8)
    draw = torch.randn
    pair = (draw(2, 3), draw(2, 3))
    return {
        "convolutions": (Convolutions().eval(), (draw(1, 3, 8, 8),), None),
        "transformer": (Transformer().eval(), (torch.randint(0, 20, (1, 5)),), None),
        "recurrent": (Recurrent(Steps()).eval(), (draw(1, 3, 6),), None),
        "layers": (Recurrent(nn.LSTM(6, 5, 2, batch_first=True)).eval(), (draw(1, 3, 6),), None),
        "branch": (Branch(), (draw(4, 4).abs(),), None),
        "counter": (Counter(), (draw(3),), None),
        "nested": (Nested(), (pair, {"y": draw(2, 3)}), None),
        "loop": (Loop(), (draw(3),), None),
        "counted": (Counted(), (draw(3), torch.tensor(3)), None),
        "rows": (Rows(), (draw(4, 3), draw(3)), None),
        "dynamic": (nn.Sequential(nn.Linear(4, 3), nn.Tanh()), (draw(3, 4),), ({0: size},)),
    }


@cache
def exported(name):
    module, inputs, shapes = rows()[name]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(module, inputs, dynamic_shapes=shapes), inputs


@cache
def content(name):
    """Return the bytes of the file of a model."""
    return serialize_pte(to_edge(exported(name)[0]).to_executorch().pte_file)
