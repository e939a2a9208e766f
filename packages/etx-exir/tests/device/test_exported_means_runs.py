# SPDX-License-Identifier: BSD-3-Clause
"""What the compiler writes, the runtime loads and executes, and `etx check` agrees.

Over PyTorch's own samples and random graphs, drawn by ETX_SEED, which the report names. `nox -s
exported` draws more of both, by another seed each time.
"""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from etx_exir.target.check import UnsupportedError, load_target
from etx_schema import read_pte
from promise import SEED, drawn, executed, kept, loaded, lowered
from random_graphs import KINDS, STATE, seeded_graph
from samples import drawn_sample
from torch import nn

SAMPLES = drawn("ETX_SAMPLES", 20)
GRAPHS = drawn("ETX_GRAPHS", 12)
X = torch.arange(32.0).reshape(2, 16) - 9


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def exported(function, inputs, target="etx"):
    """Return the file of a function."""
    return lowered(torch.export.export(Calls(function), inputs), target)


def spectrum(x):
    return torch.fft.rfft(x)


MODELS = {
    "abs of complex": (lambda x: spectrum(x).abs(), X),
    "stft": (
        lambda x: torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True).abs(),
        X,
    ),
    "complex == complex": (lambda x: spectrum(x) == spectrum(x * 1), X),
    "complex != number": (lambda x: spectrum(x) != 0, X),
    "product of complex": (
        lambda x: torch.view_as_real(spectrum(x) * spectrum(x.flip(1)).conj()),
        X,
    ),
    "dropout of all": (lambda x: F.dropout(x, 1.0, True), X),
    "to complex": (lambda x: torch.view_as_real(x.to(torch.complex64)), X),
    "to complex128": (lambda x: x.int().to(torch.complex128).abs(), X),
    "mask that is larger": (torch.masked_select, X[0], X > 3),
    "mask that broadcasts": (lambda x, m: torch.masked_select(x, m) + 1, X[:, :1], X[0] > 3),
    "roll of all": (lambda x: x.roll(3), X),
    "norm of complex": (lambda x: torch.linalg.vector_norm(spectrum(x)), X),
    "border of what is removed": (lambda x: F.pad(x[None, None], (0, 0, 1, -2), "replicate"), X),
}
REFUSED = ("to complex128",)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("target", ["etx", "executorch"])
def test_what_is_written_runs(name, target):
    function, *inputs = MODELS[name]
    if target == "executorch" and name in REFUSED:
        with pytest.raises(UnsupportedError, match="complex"):
            exported(function, tuple(inputs), target)
        return
    (actual,) = executed(loaded(exported(function, tuple(inputs), target)), inputs)
    torch.testing.assert_close(actual, function(*inputs), rtol=1e-4, atol=1e-4)


def test_dropout_in_training():
    inputs = (torch.ones(4000),)
    (left,) = executed(loaded(exported(lambda x: F.dropout(x, 0.5, True), inputs)), inputs)
    assert set(left.unique().tolist()) == {0.0, 2.0}
    assert 0.4 < left.mean().item() / 2 < 0.6


def test_dropout_of_attention():
    def attended(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)

    inputs = (torch.zeros(1, 1, 40, 8), torch.zeros(1, 1, 50, 8), torch.eye(50)[None, None])
    (left,) = executed(loaded(exported(attended, inputs)), inputs)
    assert {round(50 * x, 4) for x in left.unique().tolist()} == {0.0, 2.0}
    assert 0.4 < left.mean().item() * 25 < 0.6


def test_an_arc_sine_of_complex_numbers_is_refused_with_its_line():
    with pytest.raises(UnsupportedError) as caught:
        exported(lambda x: torch.view_as_real(spectrum(x).asin()), (X,))
    (problem,) = caught.value.problems
    assert "has aten::asin.out with self of" in problem.message
    assert "test_exported_means_runs.py" in problem.source
    pte = read_pte(exported(lambda x: torch.view_as_real(spectrum(x).asin()), (X,), None))
    assert [found.message for found in load_target("etx").check(pte)] == [problem.message]


def test_powers_of_complex_numbers_are_not_made_real():
    with pytest.raises(UnsupportedError, match="not of complex64"):
        exported(lambda x: torch.exp2(spectrum(x)).abs(), (X,))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(SAMPLES))
def test_a_drawn_sample_runs(number):
    sample = drawn_sample(SEED, number)
    if sample is None:
        return
    with torch.no_grad():
        program = export_or_none(Calls(sample.call), sample.inputs)
    if program is not None:
        holds(program, sample.call, [sample.inputs], f"{number}: {sample.name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(GRAPHS))
def test_a_drawn_graph_runs(number):
    graph, calls, shapes = seeded_graph(f"{SEED} {number}")
    eager = copy.deepcopy(graph)
    program = export_or_none(graph, calls[0], dynamic_shapes=shapes)
    if program is not None:
        holds(program, eager, calls, f"{number}: a graph of {len(graph.steps)} steps")


def export_or_none(module, inputs, **options):
    """Return an exported program; None where torch, not yet ETX, refuses."""
    try:
        return torch.export.export(module, copy.deepcopy(inputs), **options)
    except Exception:
        return None


def holds(program, eager, calls, name):
    try:
        kept(program, eager, calls)
    except Exception as error:
        error.add_note(f"ETX_SEED={SEED}, {name}\n{program.graph}")
        raise


def test_graphs_are_worth_drawing():
    """Graphs of a few seeds reach every kind of step, sizes that change and several results."""
    graphs = [seeded_graph(f"0 {number}") for number in range(150)]
    reached = {step.function for graph, _, _ in graphs for step in graph.steps}
    assert all(reached.intersection(kind.functions) for kind in (*KINDS, STATE))
    assert 30 < sum(shapes is not None for _, _, shapes in graphs) < 90
    assert sum(len(graph.returned) > 1 for graph, _, _ in graphs) > 50


def test_a_wrong_result_is_noticed():
    program = torch.export.export(Calls(torch.sin), (X,))
    with pytest.raises(AssertionError):
        kept(program, torch.cos, [(X,)])


def test_an_error_that_is_not_of_the_compiler_is_noticed(monkeypatch):
    program = torch.export.export(Calls(torch.sin), (X,))
    monkeypatch.setattr("etx_exir.program.lower_all", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        kept(program, torch.sin, [(X,)])
