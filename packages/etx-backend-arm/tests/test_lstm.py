# SPDX-License-Identifier: BSD-3-Clause
"""LSTMs as one operator of the table: layers, directions, orders of their inputs, last states."""

from __future__ import annotations

import etx_runtime
import numpy as np
import pytest
import reference_model
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.ethos_u.backend import EthosUPartitioner
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.lowering import lower_program
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import TOSAQuantizer
from etx_exir import to_edge_transform_and_lower
from etx_quant import quantize, quantize_edges
from lowered import delegates, lower
from torch import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes self.lstm")
FLOATS, INTEGERS = TosaCompileSpec("TOSA-1.0+FP"), TosaCompileSpec("TOSA-1.0+INT")


class Lstm(nn.Module):
    """An LSTM, and which of its results are returned."""

    def __init__(self, *results: str, start: bool = False, **options: object) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, **options)  # type: ignore[arg-type]
        self.results, self.start = results, start

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        first = (x[:1, :, :1].repeat(1, 1, 8),) * 2 if self.start else None
        rows, (state, cell) = self.lstm(x, first)
        found = {"rows": rows, "state": state, "cell": cell}
        return tuple(found[name] for name in self.results)


CASES = {
    "all_results": Lstm("rows", "state", "cell"),
    "last_only": Lstm("state", batch_first=True, bias=False),
    "both_ways": Lstm("rows", "cell", bidirectional=True, batch_first=True, num_layers=2),
}
SHAPE = (3, 2, 6)


def made(name: str) -> tuple[nn.Module, list[Tensor]]:
    torch.manual_seed(0)
    for parameter in CASES[name].parameters():
        nn.init.uniform_(parameter, -0.9, 0.9)
    return CASES[name].eval(), [torch.randn(SHAPE) for _ in range(5)]


def quantized(name: str) -> tuple[nn.Module, Tensor]:
    model, inputs = made(name)
    model = quantize(model, [(x,) for x in inputs], TOSAQuantizer())
    quantize_edges(model)
    return model, torch.randint(-128, 128, SHAPE, dtype=torch.int8)


@pytest.mark.parametrize("name", CASES)
def test_floats_are_those_of_eager(name: str) -> None:
    model, (x, *_) = made(name)
    (delegate,) = delegates(lower(model, x, partitioner=TOSAPartitioner(FLOATS)))
    results = reference_model.run(delegate.processed_bytes, x.numpy())
    with torch.no_grad():
        for actual, expected in zip(results, model(x), strict=True):
            torch.testing.assert_close(torch.from_numpy(actual), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_integers_are_near_those_of_the_quantized_program(name: str, narrow: bool) -> None:
    """A state is rounded to 1/128 each step; tables of 256 entries round gates as well."""
    model, x = quantized(name)
    (delegate,) = delegates(lower(model, x, partitioner=TOSAPartitioner(INTEGERS)))
    graph = lower_program(delegate.original_module, narrow).serialize()
    for actual, expected in zip(reference_model.run(graph, x.numpy()), model(x), strict=True):
        steps = np.abs(actual.astype(int) - expected.numpy().astype(int))
        assert steps.max() <= (5 if narrow else 2)
        assert steps.mean() <= (1.2 if narrow else 0.3)


@pytest.mark.parametrize("name", ["both_ways"])
def test_an_npu_with_narrow_tables_equals_the_reference_model(name: str) -> None:
    model, x = quantized(name)
    partitioner = EthosUPartitioner(EthosUCompileSpec("ethos-u55-64"))
    program = torch.export.export(model, (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    (delegate,) = delegates(edge.exported_program("forward"))
    graph = lower_program(delegate.original_module, narrow_tables=True).serialize()
    results = etx_runtime.load(bytes(edge.to_executorch().buffer))(x.numpy())
    for actual, expected in zip(results, reference_model.run(graph, x.numpy()), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", CASES)
def test_an_ethos_u85_has_tables_of_16_bits_in_one_delegate(name: str) -> None:
    model, x = quantized(name)
    partitioner = EthosUPartitioner(EthosUCompileSpec("ethos-u85-256"))
    program = torch.export.export(model, (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    assert len(delegates(edge.exported_program("forward"))) == 1


def test_another_first_state_is_taken_apart() -> None:
    torch.manual_seed(0)
    model, x = Lstm("rows", start=True).eval(), torch.randn(SHAPE)
    program = lower(model, x, partitioner=TOSAPartitioner(FLOATS))
    targets = {getattr(node.target, "__name__", "") for node in program.graph.nodes}
    assert not any("lstm" in target or "mkldnn" in target for target in targets)
    assert delegates(program)
