# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.ir.provenance import DECLINED
from programs import Calls, counts
from quantized_programs import Weight, by_token, dynamic, fused, integer_operators, on_device, ops
from torch import nn
from torch.nn import functional as F

ROWS = torch.randn(3, 5, 32, generator=torch.Generator().manual_seed(0))


class Layer(nn.Module):
    """A linear layer of rows that are quantized at run time."""

    def __init__(self, enter, weight, bias=True):
        super().__init__()
        self.enter, self.weight = enter, weight
        self.bias = nn.Parameter(torch.randn(8)) if bias else None

    def forward(self, x):
        return F.linear(self.enter(x), self.weight(), self.bias)


class Groups(nn.Module):
    """An int4 weight with a scale for each group of 8 inputs."""

    def __init__(self, size=8):
        super().__init__()
        self.rows = Weight(8 * 32 // size, size, bits=4)

    def forward(self):
        return self.rows().view(8, 32)


@pytest.mark.parametrize(
    ("weight", "name"),
    [
        (Weight(8, 32), "dynamic_linear"),
        (Weight(8, 32, axis=None), "dynamic_linear"),
        (Weight(8, 32, bits=4), "dynamic_linear_int4"),
        (Groups(), "dynamic_linear_int4"),
    ],
    ids=["int8", "one scale", "int4", "groups"],
)
@pytest.mark.parametrize("bias", [True, False])
def test_rows_with_ranges_of_their_own(weight, name, bias):
    module = Layer(by_token, weight, bias)
    program = fused(module, [ROWS])
    assert integer_operators(program) == {name: 1}
    assert len([n for n in program.graph.nodes if n.op == "call_function"]) == 1
    expected, actual = module(ROWS), program.module()(ROWS)
    assert (expected - actual).abs().max() < 1e-2 * expected.abs().max()
    assert torch.quantile((expected - actual).abs(), 0.9) < 1e-5 * expected.abs().max()
    torch.testing.assert_close(on_device(program, [ROWS]), program.module()(ROWS))


def test_scales_of_groups_take_two_bytes_where_they_are_bfloat16():
    for narrow, dtype in ((False, torch.float32), (True, torch.bfloat16)):
        weight = Groups()
        scales = weight.rows.scales
        scales.copy_(scales.bfloat16().float() if narrow else scales * 1.001)
        program = fused(Layer(by_token, weight, True), [ROWS])
        stored = [value for name, value in program.constants.items() if name.endswith("_scales")]
        assert [(value.shape, value.dtype) for value in stored] == [((1, 4, 16), dtype)]
        torch.testing.assert_close(on_device(program, [ROWS]), program.module()(ROWS))


def test_rows_of_one_range_become_more_exact():
    x = ROWS * torch.tensor([0.01, 1, 100]).view(3, 1, 1)
    module = Layer(dynamic, Weight(8, 32))
    program = fused(module, [x])
    assert integer_operators(program) == {"dynamic_linear": 1}
    exact = F.linear(x, module.weight(), module.bias)[0]
    assert (program.module()(x)[0] - exact).abs().max() < (module(x)[0] - exact).abs().max() / 50


def test_rows_are_quantized_once_for_each_layer_that_reads_them():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = Weight(8, 32), Weight(4, 32)

        def forward(self, x):
            y = by_token(x)
            return F.linear(y, self.a()), F.linear(y, self.b())

    assert integer_operators(fused(Two(), [ROWS])) == {"dynamic_linear": 2}


def test_groups_that_nibbles_cut_stay_and_say_why():
    module = Layer(by_token, Groups(4))
    program = fused(module, [ROWS])
    assert integer_operators(program) == {}
    reasons = [n.meta[DECLINED]["fuse_dynamic"] for n in program.graph.nodes if DECLINED in n.meta]
    assert reasons == ["a scale is for 4 inputs, packed int4 takes multiples of 8"]


def test_parameters_of_another_tensor_are_left():
    def other(x):
        scale, zero = ops.choose_qparams_per_token_asymmetric(x * 2, torch.int8)
        q = ops.quantize_per_token(x, scale, zero, -128, 127, torch.int8)
        return ops.dequantize_per_token(q, scale, zero, -128, 127, torch.int8, torch.float32)

    program = fused(Layer(other, Weight(8, 32)), [ROWS])
    assert "dynamic_linear" not in integer_operators(program)


def test_what_is_not_quantized_stays():
    program = fused(Calls(lambda x: F.linear(x, x[0])), [ROWS])
    assert counts(program)["aten.linear.default"] == 1
