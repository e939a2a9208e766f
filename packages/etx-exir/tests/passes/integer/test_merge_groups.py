# SPDX-License-Identifier: BSD-3-Clause
"""Groups of a convolution share the blocks of its packed weight."""

import pytest
import torch
from etx_exir.lower.lower import run_passes
from etx_exir.passes.integer import INTEGER, MergeGroups
from programs import edge
from quantized_programs import Quantized, Weight, integer_operators, on_device
from torch.nn import functional as F

KINDS = {
    "four of four": (8, 4, 4, 2),
    "eight of two": (16, 2, 2, 2),
    "of a divisor": (9, 2, 5, 3),
    "two of one": (2, 3, 1, 1),
    "wide": (3, 4, 17, 3),
    "prime": (7, 2, 5, 7),
}


def convolution(groups):
    return lambda x, w, b: F.conv2d(x, w, b, (2, 1), 1, groups=groups)


def transposed_convolution(groups):
    return lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, groups=groups)


def conv_of(
    groups: int, inputs: int, outputs: int, transposed: bool
) -> tuple[Quantized, torch.Tensor]:
    torch.manual_seed(groups)
    image = torch.randn(2, groups * inputs, 7, 6)
    if transposed:
        weight = Weight(groups * inputs, outputs, 3, 2, axis=None)
        return Quantized(transposed_convolution(groups), weight, groups * outputs), image
    weight = Weight(groups * outputs, inputs, 3, 2)
    return Quantized(convolution(groups), weight, groups * outputs), image


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_are_the_same(kind, transposed):
    groups, inputs, outputs, left = KINDS[kind]
    module, image = conv_of(groups, inputs, outputs, transposed)
    whole, apart = edge(module, (image,)), edge(module, (image,))
    run_passes(whole, INTEGER)
    run_passes(apart, [item for item in INTEGER if not isinstance(item, MergeGroups)])
    assert integer_operators(whole) == {"quantized_conv": 1}
    found = [node.args for node in whole.graph.nodes if "quantized_conv" in str(node.target)]
    assert found[0][1].meta["val"].shape[0] == left * -(-outputs * groups // left // 16)
    assert found[0][10] == groups
    expected = apart.module()(image)
    assert torch.equal(whole.module()(image), expected)
    assert torch.equal(on_device(whole, [image]), expected)
