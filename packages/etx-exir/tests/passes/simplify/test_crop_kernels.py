# SPDX-License-Identifier: BSD-3-Clause
"""Taps that meet only padding are left out of the file."""

import pytest
import torch
from etx_exir.passes.simplify.crop_kernels import CropKernels, outer_taps
from hypothesis import given
from hypothesis import strategies as st
from programs import apply, assert_like_eager, core, refusals
from torch import nn
from torch.nn import functional as F


def cropped(module, *inputs):
    """Return the shapes of the weights, after a comparison with eager."""
    program = core(module, inputs)
    apply(CropKernels(), program)
    assert_like_eager(program, module, inputs)
    calls = [node for node in program.graph.nodes if "convolution" in str(node.target)]
    return [list(node.args[1].meta["val"].shape) for node in calls]


CASES = {
    "atrous": (nn.Conv2d(3, 4, 3, padding=18, dilation=18), (1, 3, 14, 14), [4, 3, 1, 1]),
    "one axis": (nn.Conv2d(4, 4, 3, 1, 6, 6, groups=4), (2, 4, 28, 5), [4, 1, 3, 1]),
    "a line": (nn.Conv1d(2, 3, 5, padding=4, dilation=2), (1, 2, 3), [3, 2, 3]),
    "strides": (nn.Conv2d(2, 3, 5, 2, 12, 6), (1, 2, 7, 2), [3, 2, 3, 1]),
    "volume": (nn.Conv3d(2, 3, 3, padding=4, dilation=4), (1, 2, 4, 5, 1), [3, 2, 1, 3, 1]),
}


@pytest.mark.parametrize("case", CASES)
def test_only_taps_that_meet_the_image_are_stored(case):
    layer, shape, weight = CASES[case]
    assert cropped(layer.eval(), torch.randn(shape)) == [weight]


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv2d(2, 3, 3, padding=2, dilation=2), (1, 2, 3, 3)),
        (nn.Conv1d(2, 3, 3, stride=7, padding=2), (1, 2, 1)),
        (nn.ConvTranspose1d(2, 3, 3, padding=2, dilation=2), (1, 2, 3)),
    ],
    ids=["all are used", "one end", "transposed"],
)
def test_kernels_that_need_their_ends_stay(layer, shape):
    assert refusals(CropKernels(), core(layer.eval(), (torch.randn(shape),))) == set()


def test_a_weight_of_two_layers_stays():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 2, 3))

        def forward(self, x):
            far = F.conv1d(x, self.weight, padding=9, dilation=9)
            return far, F.conv1d(x, self.weight, padding=1)

    program = core(Shared(), (torch.randn(1, 2, 5),))
    assert "another layer reads the weight" in str(refusals(CropKernels(), program))


def test_numbers_that_are_not_finite_reach_the_result():
    layer = nn.Conv1d(1, 1, 3, padding=9, dilation=9, bias=False).eval()
    layer.weight.data[0, 0, 0] = torch.inf
    assert "not finite" in str(refusals(CropKernels(), core(layer, (torch.randn(1, 1, 5),))))


@given(
    taps=st.integers(1, 9),
    size=st.integers(1, 12),
    stride=st.integers(1, 5),
    padding=st.integers(0, 20),
    dilation=st.integers(1, 7),
)
def test_what_is_left_out_is_what_no_output_uses(taps, size, stride, padding, dilation):
    outputs = (size + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
    if outputs < 1:
        return
    reached = {
        tap
        for tap in range(taps)
        for output in range(outputs)
        if 0 <= tap * dilation + output * stride - padding < size
    }
    found = outer_taps(taps, size, outputs, stride, padding, dilation)
    outside = min(min(reached), taps - 1 - max(reached)) if reached else 0
    assert found == min(outside, padding // dilation)
