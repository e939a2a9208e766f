# SPDX-License-Identifier: BSD-3-Clause
"""A fault in how one node is lowered is found by delegating less and less of the model."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from etx_backend_xnnpack.nodes import TABLE
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_devtools.compare import compare
from etx_devtools.compare.bisect import bisect, compile_part, isolate
from etx_devtools.compare.reduce import write_reduced
from etx_exir.ir.equal_values import note_of
from etx_schema import EtxError, read_pte
from planted import is_still_wrong, quantized
from torch import nn
from torch.ops import aten


class Deep(nn.Module):
    """Layers in a row, all of them in one delegate."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(8))

    def forward(self, x):
        for layer in self.layers:
            x = torch.sigmoid(layer(x)) + x
        return x


@pytest.fixture(scope="module")
def deep():
    torch.manual_seed(0)
    inputs = (torch.randn(2, 6),)
    return torch.export.export(Deep().eval(), inputs), inputs


def plant(monkeypatch, name):
    """Let the sigmoid of one name become a tanh."""
    right, wrong = TABLE[aten.sigmoid.default], TABLE[aten.tanh.default]

    def emit(values, node):
        chosen = wrong if note_of(node) == name else right
        return chosen.emit(values, node)

    monkeypatch.setitem(TABLE, aten.sigmoid.default, replace(right, emit=emit))


@pytest.mark.parametrize("name", ["sigmoid", "sigmoid_3", "sigmoid_7"])
def test_a_node_of_many(deep, name, monkeypatch, tmp_path):
    program, inputs = deep
    plant(monkeypatch, name)

    def verdict(pte):
        return compare(pte, program, [inputs])

    whole, _ = compile_part(program, XnnpackPartitioner(), 0)
    assert verdict(whole).first is not None
    found = bisect(program, XnnpackPartitioner(), verdict, wrong=True)
    assert found.nodes == 24
    assert found.compilations <= math.log2(found.nodes) + 1
    assert (found.name, found.end - found.start) == (name, 1)
    assert found.source.startswith("test_bisection.py:")
    pte, report = isolate(found, program, XnnpackPartitioner(), verdict)
    check = report.first[1]
    assert (check.operator, check.value) == ("delegate XnnpackBackend", name)
    assert found.end - found.start == 1
    plan = pte.program.execution_plan[0]
    small = write_reduced(pte, plan, report.calls[0].found, tmp_path / "small.pte")
    assert is_still_wrong(*small, 1)


def test_nothing_is_wrong(deep):
    program, inputs = deep
    found = bisect(program, XnnpackPartitioner(), lambda pte: compare(pte, program, [inputs]))
    assert (found.compilations, found.steps, found.name) == (1, [(24, False)], "")


def test_a_log_replays_it(deep, monkeypatch, tmp_path):
    program, inputs = deep
    plant(monkeypatch, "sigmoid_5")
    log = tmp_path / "steps.json"

    def search(pte_of=program):
        return bisect(pte_of, XnnpackPartitioner(), lambda p: compare(p, pte_of, [inputs]), log)

    first = search()
    document = json.loads(log.read_text())
    again = search()
    assert (again.compilations, again.steps) == (0, first.steps)
    assert again.name == first.name == "sigmoid_5"
    document["steps"] = document["steps"][:2]
    log.write_text(json.dumps(document))
    assert search().compilations == first.compilations - 2
    log.write_text("{}")
    with pytest.raises(EtxError, match="not the log of a bisection"):
        search()
    log.write_text(json.dumps({"nodes": 7, "steps": []}))
    with pytest.raises(EtxError, match="among 7 nodes, and here are 24"):
        search()


def test_int8(monkeypatch):
    """Integers between quantizing operators stay together, so that their kernels are used."""
    program, inputs, content = quantized()
    plant(monkeypatch, "sigmoid")
    found = bisect(
        program, XnnpackPartitioner(), lambda pte: compare(pte, program, [inputs]), wrong=True
    )
    assert found.name == "quantize_per_tensor_3"
    assert found.compilations <= math.log2(found.nodes) + 1
    assert len(read_pte(content).program.execution_plan[0].delegates) == 0
