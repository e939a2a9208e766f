# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions of 3 x 3 taps with many channels, by tiles of 2 x 2 outputs, against eager."""

from __future__ import annotations

import random

import pytest
import torch
from case import BF16, F16, F32
from harness import PLUGIN, Out

aten = torch.ops.aten
# Channels in and out, of a group, sizes, padding, groups, images.
SHAPES = [
    (64, 64, (28, 28), (1, 1), 1, 1), (64, 128, (16, 15), (1, 1), 1, 2),
    (37, 300, (14, 14), (1, 1), 1, 1), (45, 61, (51, 19), (0, 2), 1, 1),
    (32, 96, (10, 40), (2, 0), 2, 2), (96, 200, (11, 13), (3, 3), 1, 3),
    (33, 520, (12, 10), (1, 1), 1, 1), (130, 60, (40, 29), (1, 5), 1, 1),
    (32, 300, (83, 61), (1, 1), 1, 1),
]  # fmt: skip


def convolve(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, padding: tuple[int, int],
    threads: int = 1,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return the kernel's result and eager's in float64."""
    rest = [1, 1], list(padding), [1, 1], False, [0, 0], x.shape[1] // w.shape[1]
    of_doubles = (None if a is None else a.double() for a in (x, w, bias))
    expected = aten.convolution(*of_doubles, *rest)
    out = Out(list(expected.shape), x.dtype)
    (found,) = PLUGIN.call("aten::convolution.out", x, w, bias, *rest, out, threads=threads)
    return found, expected


@pytest.mark.parametrize("dtype", [F32, F16, BF16])
@pytest.mark.parametrize("threads", [1, 2, 3, 7, 40])
def test_whole_numbers_are_exact(dtype: torch.dtype, threads: int) -> None:
    torch.manual_seed(0)
    for inputs, outputs, sizes, padding, groups, images in SHAPES:
        x = torch.randint(-1, 2, (images, inputs * groups, *sizes)).to(dtype)
        w = torch.randint(-1, 2, (outputs * groups, inputs, 3, 3)).to(dtype)
        bias = torch.randint(-3, 4, (outputs * groups,)).to(dtype)
        for added in (bias, None):
            found, expected = convolve(x, w, added, padding, threads)
            assert torch.equal(found.double(), expected), (inputs, outputs, sizes)


def test_errors_are_those_of_a_plain_sum() -> None:
    torch.manual_seed(0)
    for inputs, outputs, sizes, padding, groups, images in SHAPES:
        x = torch.randn(images, inputs * groups, *sizes)
        w = torch.randn(outputs * groups, inputs, 3, 3)
        found, expected = convolve(x, w, None, padding)
        assert (found - expected).abs().max() < 3e-6 * expected.abs().max(), (inputs, outputs)


@pytest.mark.parametrize("threads", [1, 2])
def test_sums_are_plain_only_where_one_is_not_finite(threads: int) -> None:
    """The last bits tell which way the first image went."""
    torch.manual_seed(0)
    for inputs, outputs, sizes, padding, groups, _ in SHAPES:
        x = torch.randn(2, inputs * groups, *sizes)
        w = torch.randn(outputs * groups, inputs, 3, 3)
        products, _ = convolve(x, w, None, padding, threads)
        x[1, 0, 4, 4] = torch.inf
        sums, _ = convolve(x, w, None, padding, threads)
        assert not torch.equal(products[0], sums[0]), (inputs, outputs, sizes)
        torch.testing.assert_close(products[0], sums[0], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan, 3.4e38])
def test_what_is_not_finite_stays_in_its_windows(value: float, threads: int) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(2, 64, 28, 28), torch.randn(64, 64, 3, 3)
    x[1, 5, 11, 17] = value
    found, _ = convolve(x, w, None, (1, 1), threads)
    expected = torch.nn.functional.conv2d(x, w, padding=1)
    assert torch.equal(found.isnan(), expected.isnan())
    assert torch.equal(found.isinf(), expected.isinf())
    finite = expected.isfinite() & (expected.abs() < 1e30)
    assert finite.sum() == 2 * 64 * (28 * 28) - 64 * 9
    torch.testing.assert_close(found[finite], expected[finite], rtol=2e-5, atol=2e-4)


def test_drawn_shapes(request: pytest.FixtureRequest) -> None:
    seed = request.config.getoption("seed")
    torch.manual_seed(seed)
    draw = random.Random(seed)
    for _ in range(60):
        groups, images = draw.choice([1, 1, 2]), draw.choice([1, 1, 2])
        inputs, outputs = draw.randint(32, 140), draw.randint(32, 140)
        sizes = draw.randint(8, 40), draw.randint(8, 70)
        padding = draw.randint(0, 3), draw.randint(0, 3)
        x = torch.randint(-1, 2, (images, inputs * groups, *sizes)).float()
        w = torch.randint(-1, 2, (outputs * groups, inputs, 3, 3)).float()
        found, expected = convolve(x, w, None, padding, draw.randint(1, 9))
        assert torch.equal(found.double(), expected), (inputs, outputs, sizes, padding, groups)
