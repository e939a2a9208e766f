# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from quantized_programs import Weight, fused, integer_operators, on_device, rounded
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    """A linear layer whose input is rounded to int8 or not."""

    def __init__(self, is_rounded):
        super().__init__()
        self.weight, self.is_rounded = Weight(8, 32), is_rounded

    def forward(self, x):
        if self.is_rounded:
            return rounded(F.linear(rounded(x), self.weight()))
        return F.linear(x, self.weight())


def copies(program):
    return [n.kwargs["dim_order"] for n in program.graph.nodes if "_to_dim_order" in str(n.target)]


@pytest.mark.parametrize(
    ("is_rounded", "name"), [(True, "quantized_linear"), (False, "weight_only_linear")]
)
@pytest.mark.parametrize("is_in_rows", [True, False])
def test_rows_are_made_where_there_are_none(is_rounded, name, is_in_rows):
    torch.manual_seed(0)
    x = torch.randn(3, 5, 32) if is_in_rows else torch.randn(5, 3, 32).transpose(0, 1)
    module = Layer(is_rounded)
    program = fused(module, [x])
    assert integer_operators(program) == {name: 1}
    assert ([0, 1, 2] in copies(program)) is not is_in_rows
    torch.testing.assert_close(on_device(program, [x]), module(x))


def test_a_table_is_not_made_across_orders():
    class Net(nn.Module):
        def forward(self, x):
            return rounded(rounded(x).tanh().contiguous().sigmoid())

    x = torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    program = fused(Net(), [x])
    torch.testing.assert_close(on_device(program, [x]), Net()(x))
