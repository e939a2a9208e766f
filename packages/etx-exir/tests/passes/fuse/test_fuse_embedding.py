# SPDX-License-Identifier: BSD-3-Clause
import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from programs import Calls
from quantized_programs import Table, Weight
from torch import nn
from torch.nn import functional as F

INDICES = torch.tensor([[0, 9, 3], [4, 1, 2]])


class Groups(nn.Module):
    """A table with a scale for each `size` numbers of a row, from -2^(bits-1) on."""

    def __init__(self, bits, size):
        super().__init__()
        generator = torch.Generator().manual_seed(bits)
        self.low, self.high, self.size = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, size
        numbers = torch.randint(self.low, self.high + 1, (10, 24), generator=generator)
        self.register_buffer("numbers", numbers.to(torch.int8))
        self.register_buffer("scales", torch.rand(10, 24 // size, generator=generator) + 0.1)

    def forward(self):
        return torch.ops.quantized_decomposed.dequantize_per_channel_group(
            self.numbers,
            self.scales,
            None,
            self.low,
            self.high,
            torch.int8,
            self.size,
            torch.float32,
        )


WEIGHTS = {
    "int8": (Weight(10, 24), "embedding_byte", 24),
    "int8, one scale": (Weight(10, 24, axis=None), "embedding_byte", 24),
    "int4": (Weight(10, 24, bits=4), "embedding_4bit", 12),
    "int4, odd rows": (Weight(10, 23, bits=4), "embedding_byte", 23),
    "int8, groups": (Groups(8, 8), "embedding_byte", 24),
    "int4, groups": (Groups(4, 8), "embedding_4bit", 12),
    "int2, groups": (Groups(2, 6), "embedding_2bit", 6),
}


@pytest.mark.parametrize("target", ["etx", "executorch"])
@pytest.mark.parametrize("name", WEIGHTS)
def test_rows_are_dequantized_that_are_read(name, target):
    weight, operator, stored = WEIGHTS[name]
    module = Table(weight)
    edge = to_edge(torch.export.export(module, (INDICES,)))
    expected = module(INDICES)
    torch.testing.assert_close(edge.exported_program().module()(INDICES), expected)
    program = edge.to_executorch(ExecutorchBackendConfig(target=target))
    (plan,) = program.pte_file.program.execution_plan
    assert plan.operators[0].name == f"quantized_decomposed::{operator}"
    assert 10 * stored in map(len, program.pte_file.constants)
    got = etx_runtime.load(program.buffer)(INDICES)
    torch.testing.assert_close(torch.as_tensor(got), expected)


def test_other_tables_stay():
    module = Calls(lambda self, i: F.embedding(i, self.w), w=torch.randn(10, 4))
    edge = to_edge(torch.export.export(module, (INDICES,))).exported_program()
    assert not any("embedding_byte" in str(node.target) for node in edge.graph.nodes)
