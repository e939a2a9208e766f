# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from quantized_programs import Weight, fused, integer_operators, on_device, rounded
from torch import nn
from torch.nn import functional as F

ROWS = torch.randn(3, 5, 32, generator=torch.Generator().manual_seed(0))


class Layer(nn.Module):
    """A linear layer with quantized weights and float inputs."""

    def __init__(self, weight):
        super().__init__()
        self.weight = weight
        self.bias = nn.Parameter(torch.randn(8))

    def forward(self, x):
        return F.linear(x, self.weight(), self.bias)


@pytest.mark.parametrize(
    ("weight", "name"),
    [
        (Weight(8, 32), "weight_only_linear"),
        (Weight(8, 32, axis=None), "weight_only_linear"),
        (Weight(8, 32, bits=4), "weight_only_linear_int4"),
    ],
    ids=["int8", "one scale", "int4"],
)
def test_weights_are_read_where_they_lie(weight, name):
    module = Layer(weight)
    program = fused(module, [ROWS])
    assert integer_operators(program) == {name: 1}
    assert not any(
        n.meta["val"].dtype == torch.float32 and n.meta["val"].numel() == 8 * 32
        for n in program.graph.nodes
        if n.op != "output"
    )
    torch.testing.assert_close(program.module()(ROWS), module(ROWS))
    torch.testing.assert_close(on_device(program, [ROWS]), program.module()(ROWS))


def test_a_result_that_stays_float_is_computed_in_float():
    class Left(Layer):
        def forward(self, x):
            return super().forward(rounded(x)).softmax(-1)

    module = Left(Weight(8, 32))
    program = fused(module, [ROWS])
    assert integer_operators(program) == {"weight_only_linear": 1}
    torch.testing.assert_close(program.module()(ROWS), module(ROWS))
