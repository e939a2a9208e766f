# SPDX-License-Identifier: BSD-3-Clause
"""Random integers are within what a program takes: no index is beyond its table."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_devtools.report.measure import measure
from etx_exir import compile as compile_model
from etx_runtime import Runtime
from etx_runtime.commands.samples import InputOptions, prepare_calls
from torch import nn


class Tables(nn.Module):
    """Integers that index tables of several sizes, directly and after views and casts."""

    def __init__(self):
        super().__init__()
        self.words, self.small = nn.Embedding(300, 4), nn.Embedding(3, 4)
        self.register_buffer("rows", torch.randn(5, 4))

    def forward(self, words, kinds, rows, columns, both, free):
        y = self.words(words) + self.small(kinds.long().view(1, 6))
        y = y + torch.index_select(self.rows, 0, rows) + self.rows[both[0]]
        y = y + self.small(both[0]) + self.rows.gather(1, columns)[:1]
        return y * free


def example():
    def integers(*shape):
        return torch.zeros(shape, dtype=torch.long)

    kinds = torch.zeros(6, dtype=torch.int32)
    return integers(1, 6), kinds, integers(6), integers(5, 4), integers(2, 6), integers(1, 6, 1)


@pytest.mark.parametrize("partitioner", [[], [XnnpackPartitioner()]])
def test_indices_are_within_their_tables(tmp_path, partitioner):
    path = str(tmp_path / "tables.pte")
    compile_model(Tables().eval(), example(), path=path, partitioner=partitioner)
    method = Runtime.get().load_program(path).load_method("forward")
    assert method.index_bounds() == {0: 300, 1: 3, 2: 5, 3: 4, 4: 3}
    seen = []
    for seed in range(20):
        (call,) = prepare_calls(method, InputOptions(seed=seed))
        method(call)
        seen.append([int(item.max()) for item in call])
    assert np.max(seen, 0).tolist()[1:] == [2, 4, 3, 2, 9]
    assert np.max(seen, 0)[0] > 200
    assert measure(path)["forward"]
