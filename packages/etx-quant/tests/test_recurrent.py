# SPDX-License-Identifier: BSD-3-Clause
"""Recurrent layers: their matrices are integers, their gates and states float."""

from __future__ import annotations

from functools import partial
from typing import Any

import etx_runtime
import pytest
import torch
from etx_exir import to_edge
from etx_quant import QuantizationError, compare, quantize, quantize_with_report
from torch import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore:The tensor attribute:UserWarning")  # torch.export
INPUT, STATE, RESULT = 16, 32, 8


class Recurrent(nn.Module):
    """A recurrent layer of two directions and a linear one."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.layer = kind(INPUT, STATE, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * STATE, RESULT)

    def forward(self, x: Tensor) -> Tensor:
        rows: Tensor = self.head(self.layer(x)[0])
        return rows


def model_of(kind: Any) -> tuple[nn.Module, list[tuple[Tensor]]]:
    torch.manual_seed(0)
    return Recurrent(kind).eval(), [(torch.randn(1, 6, INPUT),) for _ in range(4)]


@pytest.mark.parametrize(
    ("kind", "gates"),
    [(nn.LSTM, 4), (nn.GRU, 3), (nn.RNN, 1), (partial(nn.RNN, nonlinearity="relu"), 1)],
)
@pytest.mark.parametrize(
    ("recipe", "least"), [("int8", 35), ("int8-dynamic", 40), ("int8-weight", 40), ("int4", 20)]
)
def test_matrices_are_integers(kind: Any, gates: int, recipe: str, least: float) -> None:
    model, calls = model_of(kind)
    quantized, report = quantize_with_report(model, calls, recipe=recipe, group_size=16)
    assert report.sqnr > least
    assert [layer.name for layer in report.layers] == ["layer", "head"]
    rows, columns = 2 * gates * STATE, INPUT + STATE
    scales = rows * columns // 16 if recipe == "int4" else 2 * rows
    bits = 4 if recipe == "int4" else 8
    assert report.layers[0].bytes == rows * columns * bits // 8 + 4 * scales
    program = to_edge(torch.export.export(quantized, calls[0])).to_executorch()
    nodes = program.exported_program().graph.nodes
    assert not any("dequantize_per_channel" in str(node.target) for node in nodes)
    on_device = etx_runtime.load(program.buffer, outputs="torch")
    assert compare(quantized, on_device, calls).sqnr > 100


def test_groups_that_do_not_divide_are_named() -> None:
    model, calls = model_of(nn.GRU)
    with pytest.raises(QuantizationError, match="layer 'layer': a row of its weight has 16"):
        quantize(model, calls, recipe="int4", group_size=32)
