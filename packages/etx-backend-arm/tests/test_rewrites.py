# SPDX-License-Identifier: BSD-3-Clause
"""Whole operators that are taken apart before they are quantized: nothing stays beside an NPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import etx_runtime
import numpy as np
import pytest
import torch
from etx_backend_arm.ethos_u.backend import EthosUPartitioner, EthosUQuantizer
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.lowering import lower_program
from etx_exir import to_edge_transform_and_lower
from etx_quant import quantize
from lowered import delegates, interpreted
from test_networks import noise
from torch import Tensor, nn

TARGET = EthosUCompileSpec("ethos-u55-128")
pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes self")


class Whole(nn.Module):
    """A function of layers."""

    def __init__(self, function: Callable[..., Tensor], *layers: nn.Module) -> None:
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        """Call the function."""
        return self.function(self.layers, x)


class Vision(nn.Module):
    """Patches, a token and places before a layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 16) * 0.1)
        self.place = nn.Parameter(torch.randn(1, 5, 16) * 0.1)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return the token."""
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.layer(x)[:, 0]


CASES = {
    "gru": (lambda: Whole(lambda m, x: m[0](x)[0], nn.GRU(6, 8, batch_first=True)), (1, 2, 6)),
    "gru_both_ways": (
        lambda: Whole(
            lambda m, x: m[1](m[0](x)[1][-1]),
            nn.GRU(6, 8, 2, bidirectional=True),
            nn.Linear(8, 3),
        ),
        (2, 1, 6),
    ),
    "vision": (Vision, (1, 3, 20, 17)),
}
"""Each with an input's shape."""


@pytest.mark.parametrize("name", CASES)
def test_one_delegate_equals_the_reference_model(name: str) -> None:
    create, shape = CASES[name]
    torch.manual_seed(0)
    model, inputs = create().eval(), [(torch.randn(shape),) for _ in range(13)]
    quantized = quantize(model, inputs[1:], EthosUQuantizer(TARGET))
    (x,) = inputs[0]
    exported = torch.export.export(quantized, (x,))
    edge = to_edge_transform_and_lower(exported, partitioner=[EthosUPartitioner(TARGET)])
    program = edge.exported_program("forward")
    assert len(delegates(program)) == 1
    beside = {n.target.__name__ for n in program.graph.nodes if n.op == "call_function"}
    assert not beside & {"convolution.default", "_softmax.default", "bmm.default", "add.Tensor"}
    (expected,) = interpreted(
        program, x, graph_of=lambda d: lower_program(d.original_module, True).serialize()
    )
    actual = etx_runtime.load(bytes(edge.to_executorch().buffer))(x.numpy())
    np.testing.assert_array_equal(actual, expected)
    with torch.no_grad():
        assert noise(expected, model(x)) > 20


def test_lowering_needs_no_quantizer() -> None:
    """Whoever lowers floats, or what is quantized already, does not wait for torchao."""
    code = "import sys, etx_backend_arm.partition; sys.exit('torchao' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
