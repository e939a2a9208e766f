# SPDX-License-Identifier: BSD-3-Clause
"""Layers in branches and loop bodies go to XNNPACK with the weights that these capture."""

from __future__ import annotations

import etx_runtime
import pytest
import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge, to_edge_transform_and_lower
from torch import nn
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

SIZE = 64
KINDS = ("branches", "one branch", "loop", "rows", "sums", "branch in a loop")


class Nested(nn.Module):
    """Two layers, the second of which several graphs share, under control flow of a kind."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.first, self.second = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)

    def both(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu()).tanh()

    def branch(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, self.both, lambda x: self.second(x) - 1, (x,))

    def repeat(self, x: torch.Tensor, body: nn.Module | object) -> torch.Tensor:
        def step(i: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return i + 1, body(x)  # type: ignore[operator]

        return while_loop(lambda i, x: i < 3, step, (torch.tensor(0), x))[1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind == "branches":
            return self.branch(x)
        if self.kind == "one branch":
            return torch.cond(x.sum() > 0, self.both, lambda x: x - 1, (x,))
        if self.kind == "loop":
            return self.repeat(x, self.both)
        if self.kind == "branch in a loop":
            return self.repeat(x, self.branch)
        if self.kind == "rows":
            return map_rows(lambda row: self.both(row[None])[0], x)
        return scan(lambda c, row: (self.both(c + row), c * row), x[:1] * 0, x[:, None], dim=0)[1]


@pytest.mark.parametrize("kind", KINDS)
def test_layers_of_nested_graphs(kind: str) -> None:
    torch.manual_seed(0)
    module = Nested(kind).eval()
    x = torch.randn(3, SIZE)
    program = torch.export.export(module, (x,))
    finished = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    buffer = finished.to_executorch().buffer
    assert b"XnnpackBackend" in buffer
    plain = to_edge(program).to_executorch().buffer
    assert len(buffer) < len(plain) + 4 * SIZE * SIZE  # no weight is stored twice
    model = etx_runtime.load(buffer)
    for sign in (1, -1):
        with torch.no_grad():
            expected = module(sign * x)
        torch.testing.assert_close(torch.from_numpy(model((sign * x).numpy())), expected)
