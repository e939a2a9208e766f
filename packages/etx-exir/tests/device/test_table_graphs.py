# SPDX-License-Identifier: BSD-3-Clause
"""Graphs over the whole table of kernels run as eager, with memory reused and not.

`nox -s exported -- table` draws 10,000 of them and prints what became of each.
"""

from __future__ import annotations

import random

import pytest
import table_runs
import torch
from promise import SEED, drawn, executed
from recorded_calls import Call, call_of
from table_graphs import Draft, TableGraph, drawn_graph
from table_runs import RIGHT, outcome
from table_sweep import drawn_outcome

GRAPHS = drawn("ETX_TABLE_GRAPHS", 40)
X = torch.linspace(-2, 2, 12).reshape(3, 4)
SIN = call_of(torch.ops.aten.sin.default, (X,), {})


def graph_of(*calls: Call) -> TableGraph:
    draft = Draft(random.Random(0))
    assert all(map(draft.added, calls))
    return draft.graph()


@pytest.mark.parametrize("number", range(GRAPHS))
def test_a_drawn_graph_runs(number):
    found, words = drawn_outcome(number)
    assert found.kind in RIGHT, f"ETX_SEED={SEED}, {number}: {found.kind}: {found.reason}\n{words}"


def test_a_right_graph_ran():
    assert outcome(graph_of(SIN)).kind == "ran"


def test_a_wrong_result_is_noticed(monkeypatch):
    monkeypatch.setattr(table_runs, "executed", lambda *call: [x + 1 for x in executed(*call)])
    assert outcome(graph_of(SIN)).kind == "differs"


def test_other_bits_are_noticed(monkeypatch):
    drift = iter((0, 1e-7))

    def drifted(*call):
        added = next(drift)
        return [x + added for x in executed(*call)]

    monkeypatch.setattr(table_runs, "executed", drifted)
    found = outcome(graph_of(SIN))
    assert (found.kind, found.reason) == ("differs", "result 0: other bits with memory reused")


def test_an_error_of_another_kind_is_noticed(monkeypatch):
    monkeypatch.setattr("etx_exir.program.lower_all", lambda *_, **__: 1 / 0)
    assert outcome(graph_of(SIN)).kind == "failed"


def test_graphs_are_worth_drawing():
    """Graphs of a few seeds have many operators, steps that read steps and all that is promised."""
    graphs = [drawn_graph(random.Random(f"0 {number}")) for number in range(100)]
    targets = {step.call.target for graph in graphs for step in graph.steps}
    new = [x for graph in graphs for x in graph.new]
    assert len(targets) > 150
    assert max(len(graph.steps) for graph in graphs) == 12
    assert {torch.float16, torch.bfloat16, torch.bool, torch.int64} <= {x.dtype for x in new}
    assert any(x.dim() == 0 for x in new)
    assert any(x.numel() == 0 for x in new)
    assert any(x.dim() == 4 and not x.is_contiguous() for x in new)
    assert sum(map(chained, graphs)) > 150


def chained(graph: TableGraph) -> int:
    """Return how many steps read what another step wrote."""
    first = len(graph.new)
    return sum(any(place >= first for place in step.places) for step in graph.steps)
