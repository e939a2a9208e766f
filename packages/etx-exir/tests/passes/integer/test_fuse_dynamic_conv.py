# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions of images that are quantized with the range that they have."""

import pytest
import torch
from etx_exir.ir.provenance import DECLINED
from programs import counts
from quantized_programs import Weight, by_token, dynamic, fused, integer_operators, on_device
from torch import nn
from torch.nn import functional as F

SEEDED = torch.Generator().manual_seed(0)
IMAGE = torch.randn(2, 6, 9, 7, generator=SEEDED)
ROWS = torch.randn(3, 6, 10, generator=SEEDED)


class Layer(nn.Module):
    """A convolution of what is quantized at run time."""

    def __init__(self, function, weight, bias=0, enter=dynamic, leave=lambda y: y):
        super().__init__()
        self.function, self.weight, self.enter, self.leave = function, weight, enter, leave
        self.bias = nn.Parameter(torch.randn(bias)) if bias else None

    def forward(self, x):
        return self.leave(self.function(self.enter(x), self.weight(), self.bias))


def conv(**moves):
    return lambda x, w, b: F.conv2d(x, w, b, **moves)


KINDS = {
    "plain": (conv(padding=1, stride=2), Weight(5, 6, 3, 2), 5, IMAGE),
    "pointwise": (conv(), Weight(33, 6, 1, 1), 33, IMAGE),
    "without a bias": (conv(dilation=(1, 2)), Weight(4, 6, 2, 3), 0, IMAGE),
    "of one scale": (conv(padding=(0, 2)), Weight(4, 6, 3, 3, axis=None), 4, IMAGE),
    "in groups": (conv(groups=3, padding=2), Weight(51, 2, 2, 2), 51, IMAGE),
    "of rows": (lambda x, w, b: F.conv1d(x, w, b, 2, 1), Weight(4, 6, 3), 4, ROWS),
    "transposed": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, 2),
        Weight(6, 19, 3, 3, axis=None),
        38,
        IMAGE,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_exact(kind):
    function, weight, bias, x = KINDS[kind]
    module = Layer(function, weight, bias)
    program = fused(module, [x])
    assert integer_operators(program) == {"dynamic_conv": 1}
    assert not [name for name in counts(program) if "dequantize" in name]
    expected = module(x)
    for actual in (program.module()(x), on_device(program, [x])):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("clamp", "limits"),
    [
        (torch.relu, [0.0, float("inf")]),
        (F.relu6, [0.0, 6.0]),
        (lambda y: y.clamp(max=0.25), [-float("inf"), 0.25]),
    ],
    ids=["relu", "relu6", "clamp"],
)
def test_a_clamp_is_the_bounds_of_the_result(clamp, limits):
    module = Layer(conv(padding=1), Weight(5, 6, 3, 3), 5, leave=clamp)
    program = fused(module, [IMAGE])
    (call,) = [n for n in program.graph.nodes if "dynamic_conv" in str(n.target)]
    assert list(call.args[-2:]) == limits
    assert not {"aten.relu.default", "aten.hardtanh.default", "aten.clamp.default"} & set(
        counts(program)
    )
    torch.testing.assert_close(on_device(program, [IMAGE]), module(IMAGE), rtol=1e-5, atol=1e-5)


def test_a_result_that_is_read_before_its_clamp_keeps_both():
    module = Layer(conv(), Weight(5, 6, 3, 3), 5, leave=lambda y: (y.relu(), y))
    program = fused(module, [IMAGE])
    assert counts(program)["aten.relu.default"] == 1
    expected = module(IMAGE)
    for actual, each in zip(program.module()(IMAGE), expected, strict=True):
        torch.testing.assert_close(actual, each, rtol=1e-5, atol=1e-5)


def test_nothing_moves_between_two_convolutions():
    first = Layer(conv(padding=1), Weight(5, 6, 3, 3), 5, leave=torch.relu)
    module = nn.Sequential(first, Layer(conv(stride=2), Weight(7, 5, 2, 2), 7))
    program = fused(module, [IMAGE])
    assert integer_operators(program) == {"dynamic_conv": 2}
    moved = [n.args[0] for n in program.graph.nodes if "permute" in str(n.target)]
    assert [n.meta["val"].dtype for n in moved] == [torch.int8, torch.float32]
    torch.testing.assert_close(on_device(program, [IMAGE]), module(IMAGE), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bounds", [(2.0, 1.0), (float("nan"), None)])
def test_bounds_that_no_number_is_within_stay_a_clamp(bounds):
    module = Layer(conv(), Weight(5, 6, 3, 3), 5, leave=lambda y: y.clamp(*bounds))
    program = fused(module, [IMAGE])
    assert counts(program)["aten.clamp.default"] == 1
    got = on_device(program, [IMAGE])
    torch.testing.assert_close(got, module(IMAGE), equal_nan=True)


@pytest.mark.parametrize(("groups", "channels"), [(6, 6), (3, 45)])
def test_groups_of_few_channels_say_why_they_stay(groups, channels):
    weight = Weight(channels, 6 // groups, 3, 3)
    program = fused(Layer(conv(groups=groups), weight, channels), [IMAGE])
    assert integer_operators(program) == {}
    reasons = [
        n.meta[DECLINED].get("fuse_dynamic") for n in program.graph.nodes if DECLINED in n.meta
    ]
    assert reasons == [f"of {groups} groups of {channels // groups} channels float32 is faster"]


def test_an_image_with_a_range_for_each_row_says_why_it_stays():
    program = fused(Layer(conv(), Weight(5, 6, 3, 3), 5, enter=by_token), [IMAGE])
    assert integer_operators(program) == {}
    reasons = [
        n.meta[DECLINED].get("fuse_dynamic") for n in program.graph.nodes if DECLINED in n.meta
    ]
    assert reasons == ["the image has a range for each of its rows"]
