# SPDX-License-Identifier: BSD-3-Clause
"""Decomposing without overriding what a program cannot meet gives what torch's own way does."""

from __future__ import annotations

import pytest
import torch
from etx_exir.lower.decompose import decomposition_table, run_decompositions
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")

X = torch.randn(2, 3, 8, 8)
ROWS = torch.randn(2, 6, 16)


class Of(nn.Module):
    def __init__(self, function, *parts):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, x):
        return self.function(x, *self.parts)


def branches(x):
    return torch.cond(x.sum() > 0, lambda x: x.cumsum(1).softmax(1), lambda x: x.flip(0) * 2, (x,))


def attention(x):
    return nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)


def composites(x):
    y = torch.einsum("bij,bkj->bik", x, x).clamp(0, 1)
    y = nn.functional.cosine_similarity(y[..., None], y[:, None], dim=1)
    return y.tensor_split(2, -1)[0].flatten(1).std(1), torch.linalg.vector_norm(x.mT.diff(), 2, 0)


CASES = {
    "convolutions": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Hardswish()), X),
    "images": (
        Of(lambda x: nn.functional.pad(nn.functional.interpolate(x, scale_factor=2), (1, 1))),
        X,
    ),
    "encoder": (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), ROWS),
    "recurrent": (Of(lambda x, lstm: lstm(x)[0], nn.LSTM(16, 8, 2, bidirectional=True)), ROWS),
    "attention": (Of(attention), ROWS[:, None]),
    "branches": (Of(branches), torch.randn(4, 4)),
    "composites": (Of(composites), ROWS),
}


@pytest.mark.parametrize("name", CASES)
def test_the_graphs_are_those_of_torch(name):
    model, x = CASES[name]
    program = torch.export.export(model.eval(), (x,))
    ours = run_decompositions(program, decomposition_table())
    theirs = program.run_decompositions(decomposition_table())
    assert ours.graph_module.print_readable(False) == theirs.graph_module.print_readable(False)
    assert str(ours.graph_signature) == str(theirs.graph_signature)


def test_an_operator_that_is_registered_later_is_kept():
    namespace = "etx_test_later"
    assert namespace not in torch.ops._dir
    with torch.library._scoped_library(namespace, "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
        twice = torch.ops.etx_test_later.twice.default
        program = torch.export.export(Of(twice), (X,))
        table = decomposition_table()
        ours = run_decompositions(program, table)
        theirs = program.run_decompositions(dict(table))
    assert [node.target for node in ours.graph.nodes if node.op == "call_function"] == [
        node.target for node in theirs.graph.nodes if node.op == "call_function"
    ]
