# SPDX-License-Identifier: BSD-3-Clause
"""Products, convolutions, poolings and normalisations against eager in float64."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import etx_kernels_portable
import pytest
import torch
from case import BF16, F16, F32, F64, I32, I64
from harness import PLUGIN, KernelError, Out, Plugin, dim_order_of

aten = torch.ops.aten
TOLERANCE = {F16: 4e-3, BF16: 3e-2, F32: 2e-5, F64: 1e-9, I64: 0, I32: 0}
DTYPES = [F32, F64, F16, BF16]
SIZES = [
    (1, 1, 1), (1, 64, 64), (3, 5, 7), (0, 4, 4), (4, 0, 5), (5, 4, 0), (12, 32, 32), (13, 33, 65),
    (17, 384, 31), (128, 32, 128), (40, 1024, 96), (30, 300, 1), (100, 300, 200), (9, 129, 47),
    (1, 301, 901),
]  # fmt: skip


def draw(dtype: torch.dtype, *sizes: int) -> torch.Tensor:
    if dtype.is_floating_point:
        return torch.randn(sizes).to(dtype)
    return torch.randint(-9, 9, sizes).to(dtype)


def exact(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) else value


def compare(actual: torch.Tensor, expected: torch.Tensor, scale: float = 1) -> None:
    """Errors may be a fraction of the largest element."""
    tolerance = TOLERANCE[actual.dtype] * scale
    finite = expected[expected.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 1.0
    torch.testing.assert_close(
        actual.double(), expected.double(), rtol=tolerance, atol=tolerance * largest,
        equal_nan=True,
    )  # fmt: skip


def run(name: str, dtype: torch.dtype, expected: Any, *args: Any, **options: Any) -> list[Any]:
    reference = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    outs = [Out(list(w.shape), dtype, dim_order_of(w)) for w in reference]
    results = PLUGIN.call(name, *args, *outs, **options)[-len(outs) :]
    for actual, want in zip(results, reference, strict=True):
        compare(actual, want)
    return results


@pytest.mark.parametrize("dtype", [F32, F64, F16, BF16, I64, I32])
@pytest.mark.parametrize("threads", [1, 2])
def test_products(dtype: torch.dtype, threads: int) -> None:
    torch.manual_seed(0)
    for m, k, n in SIZES:
        a, b, w, bias = (draw(dtype, *s) for s in ((m, k), (k, n), (n, k), (n,)))
        product, linear = exact(a) @ exact(b), exact(a) @ exact(w).t()
        run("aten::mm.out", dtype, product, a, b, threads=threads)
        run("aten::linear.out", dtype, linear, a, w, None, threads=threads)
        run("aten::linear.out", dtype, linear + exact(bias), a, w, bias, threads=threads)
        for self in (bias, draw(dtype, m, n), draw(dtype, m, 1), draw(dtype)):
            want = 3 * product + 2 * exact(self)
            run("aten::addmm.out", dtype, want, self, a, b, 2, 3, threads=threads)
        a, b = draw(dtype, 3, m, k), draw(dtype, 3, k, n)
        run("aten::bmm.out", dtype, exact(a) @ exact(b), a, b, threads=threads)


def test_linear_folds_leading_dimensions() -> None:
    x, w = draw(F32, 2, 3, 4, 40), draw(F32, 7, 40)
    run("aten::linear.out", F32, exact(x) @ exact(w).t(), x, w, None)
    run("aten::linear.out", F32, exact(x) @ exact(w[0]), x, w[0], None)


def test_addmm_with_beta_zero_ignores_self() -> None:
    a, b = draw(F32, 3, 4), draw(F32, 4, 5)
    self = torch.full((5,), torch.nan)
    run("aten::addmm.out", F32, exact(a) @ exact(b), self, a, b, 0, 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_addmm_with_alpha_zero_leaves_out_infinities_where_eager_does(dtype: torch.dtype) -> None:
    x, a, b = draw(dtype, 4, 3), torch.full((4, 2), torch.inf, dtype=dtype), draw(dtype, 2, 3)
    for beta in (1, 0):
        (actual,) = PLUGIN.call("aten::addmm.out", x, a, b, beta, 0, Out([4, 3], dtype))
        expected = torch.addmm(x, a, b, beta=beta, alpha=0)
        torch.testing.assert_close(actual, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_roots_and_powers_of_what_is_not_positive(dtype: torch.dtype) -> None:
    x = torch.tensor([-0.0, 0.0, -torch.inf, torch.inf, -4.0, 4.0], dtype=dtype)
    for exponent in (0.5, -0.5, -1):
        (actual,) = PLUGIN.call("aten::pow.Tensor_Scalar_out", x, exponent, Out([6], dtype))
        expected = x.pow(exponent)
        assert torch.equal(actual.nan_to_num(7), expected.nan_to_num(7)), exponent
        assert torch.equal((1 / actual).nan_to_num(7), (1 / expected).nan_to_num(7)), exponent


class Convolutions:
    """Random arguments of a convolution."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def axes(self, rank: int, *choices: int) -> list[int]:
        return [self.random.choice(choices) for _ in range(rank)]

    def draw(self) -> tuple[Any, ...] | None:
        pick = self.random.choice
        rank, transposed = pick([1, 2, 2, 3]), self.random.random() < 0.35
        groups, cin, cout = pick([1, 1, 2, 4]), pick([1, 2, 3, 8, 17]), pick([1, 2, 5, 12, 30])
        if self.random.random() < 0.2:
            groups, cin, cout = pick([3, 8, 33]), 1, pick([1, 1, 2])
        kernel, stride = self.axes(rank, 1, 2, 3, 3, 5, 7), self.axes(rank, 1, 1, 2, 3, 4)
        dilation, padding = self.axes(rank, 1, 1, 1, 2, 3), self.axes(rank, 0, 1, 2, 3)
        most = {1: 90, 2: 24, 3: pick([9, 9, 20])}[rank]
        size = [self.random.randint(1, pick([3, most, most])) for _ in range(rank)]
        if self.random.random() < 0.4:
            kernel[1:], stride, dilation = kernel[:1] * (rank - 1), stride[:1] * rank, [1] * rank
        extra = [0] * rank
        for i in range(rank):
            reach = dilation[i] * (kernel[i] - 1) + 1
            if transposed:
                extra[i] = self.random.randint(0, max(stride[i], dilation[i]) - 1)
                if (size[i] - 1) * stride[i] - 2 * padding[i] + reach + extra[i] < 1:
                    return None
            else:
                size[i] = max(size[i], reach - 2 * padding[i])
        x = torch.randn(pick([1, 1, 2, 3]), cin * groups, *size)
        channels = (cin * groups, cout) if transposed else (cout * groups, cin)
        bias = torch.randn(cout * groups) if self.random.random() < 0.6 else None
        options = stride, padding, dilation, transposed, extra, groups
        return x, torch.randn(*channels, *kernel), bias, *options


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_convolutions(dtype: torch.dtype, threads: int) -> None:
    torch.manual_seed(0)
    source = Convolutions(threads)
    for _ in range(600 if dtype is F32 else 40):
        args = source.draw()
        if args is None:
            continue
        args = tuple(a.to(dtype) if isinstance(a, torch.Tensor) else a for a in args)
        expected = aten.convolution(*map(exact, args))
        run("aten::convolution.out", dtype, expected, *args, threads=threads)


SMALL_MAPS = [  # Channels in and out, of a group, sizes, kernel, stride, dilation, groups.
    (16, 64, (7, 7), 3, 1, 1, 1), (9, 130, (14, 13), 3, 1, 1, 1), (16, 96, (15, 14), 3, 2, 1, 1),
    (8, 64, (11, 12), 3, 1, 2, 2), (5, 70, (10, 10), 5, 1, 1, 1), (8, 72, (21, 2), 3, 1, 1, 1),
    (6, 80, (33, 1), 3, 1, 1, 1), (4, 68, (4, 5, 6), 3, 1, 1, 1), (8, 100, (9, 8, 9), 3, 2, 1, 2),
    (3, 65, (24, 30), 7, 3, 1, 1), (40, 64, (6, 20), 3, 1, 1, 1), (64, 256, (10, 10), 3, 1, 1, 1),
    (32, 512, (13, 13), 3, 1, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("threads", [1, 2, 3, 7, 40])
def test_convolutions_of_small_maps(dtype: torch.dtype, threads: int) -> None:
    """Many channels, whose windows are packed: of whole numbers, so that sums are exact."""
    torch.manual_seed(0)
    for cin, cout, sizes, kernel, stride, dilation, groups in SMALL_MAPS:
        rank = len(sizes)
        x = torch.randint(-1, 2, (2, cin * groups, *sizes)).to(dtype)
        w = torch.randint(-1, 2, (cout * groups, cin, *[kernel] * rank)).to(dtype)
        bias = torch.randint(-3, 4, (cout * groups,)).to(dtype)
        axes = ([n] * rank for n in (stride, kernel // 2, dilation))
        rest = *axes, False, [0] * rank, groups
        want = aten.convolution(*map(exact, (x, w, bias)), *rest)
        out = Out(list(want.shape), dtype)
        (actual,) = PLUGIN.call("aten::convolution.out", x, w, bias, *rest, out, threads=threads)
        assert torch.equal(actual.double(), want), (cin, cout, sizes)


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("dilation", [1, 2, 5, 17, 18, 40])
def test_lines_whose_padding_is_that_of_the_next(dtype: torch.dtype, dilation: int) -> None:
    torch.manual_seed(0)
    for sizes in ((9, 56), (40, 21), (1, 90)):
        x = torch.randint(-1, 2, (2, 23, *sizes)).to(dtype)
        w = torch.randint(-1, 2, (32, 23, 3, 3)).to(dtype)
        rest = [1, 1], [dilation] * 2, [dilation] * 2, False, [0, 0], 1
        out = Out([2, 32, *sizes], dtype)
        (actual,) = PLUGIN.call("aten::convolution.out", x, w, None, *rest, out)
        assert torch.equal(actual.double(), aten.convolution(exact(x), exact(w), None, *rest))


@pytest.mark.parametrize(
    "kernel", [(1, 3, 3), (2, 3, 3), (3, 3, 3), (1, 5, 5), (2, 5, 5), (3, 1, 5), (1, 1, 1)]
)
def test_depthwise_convolutions_of_volumes(kernel: tuple[int, int, int]) -> None:
    torch.manual_seed(0)
    depths = [(depth, step) for depth in (1, 2, 5) for step in (1, 2, 3)]
    for (depth, step), pad, gap, multiple in product(depths, (0, 1, 2), (1, 3), (1, 2)):
        if depth + 2 * pad <= gap * (kernel[0] - 1):
            continue
        x, w = torch.randn(1, 3, depth, 17, 12), torch.randn(3 * multiple, 1, *kernel)
        for stride in (1, 2):
            rest = [step, stride, stride], [pad, 2, 1], [gap, 1, 1], False, [0, 0, 0], 3
            expected = aten.convolution(exact(x), exact(w), None, *rest)
            run("aten::convolution.out", F32, expected, x, w, None, *rest)


ODD_SHAPES = {  # Sizes, weight, stride, padding, dilation, transposed, groups.
    "windows_as_wide_as_the_image": ((2, 3, 30, 7), (8, 3, 5, 7), [2, 3], [3, 0], [1, 1], False, 1),
    "wide_windows_of_planes": ((2, 6, 28, 7), (12, 1, 7, 7), [1, 1], [0, 0], [1, 1], False, 6),
    "wide_windows_apart": ((1, 4, 19, 5), (6, 4, 3, 5), [1, 1], [2, 0], [2, 1], False, 1),
    "lines_of_one_point": ((3, 8, 31, 1), (12, 4, 1, 1), [2, 2], [0, 0], [1, 3], False, 2),
    "lines_of_one_point_in_volumes": ((2, 6, 3, 19, 1), (4, 6, 2, 3, 1), [1, 2, 1], [1, 1, 0],
                                      [1, 1, 1], False, 1),
    "few_points_of_many_images": ((9, 40, 2), (48, 20, 1), [1], [0], [1], False, 2),
    "few_windows_of_many_images": ((5, 12, 3, 2), (34, 12, 3, 2), [1, 1], [1, 0], [1, 1], False, 1),
    "one_to_many_channels": ((2, 3, 21, 9), (69, 1, 3, 3), [3, 2], [2, 1], [2, 1], False, 3),
    "phases_that_no_tap_reads": ((2, 8, 15, 13), (24, 4, 3, 3), [2, 2], [2, 1], [2, 4], False, 2),
    "padding_larger_than_the_image": ((1, 64, 14, 18), (64, 64, 3, 3), [2, 2], [18, 18], [18, 18],
                                      False, 1),
    "taps_of_many_lines": ((1, 37, 150, 19), (37, 1, 9, 9), [1, 1], [4, 4], [1, 1], False, 37),
    "taps_far_apart": ((2, 21, 9, 30), (21, 1, 7, 7), [1, 2], [9, 6], [3, 2], False, 21),
    "narrow_planes": ((2, 35, 40, 7), (35, 1, 3, 3), [2, 2], [1, 1], [1, 1], False, 35),
    "to_one_channel": ((2, 48, 17, 41), (48, 1, 3, 2), [1, 1], [1, 0], [1, 1], True, 1),
    "to_few_channels": ((2, 96, 23, 1), (96, 8, 2, 2), [3, 3], [0, 0], [1, 1], True, 2),
    "to_few_channels_in_parts": ((1, 64, 60, 50), (64, 3, 4, 4), [2, 3], [1, 2], [1, 2], True, 1),
    "to_few_channels_of_volumes": ((1, 48, 3, 4, 5), (48, 2, 2, 3, 2), [1, 2, 1], [0, 1, 1],
                                   [1, 1, 2], True, 1),
    "one_line_to_many": ((3, 3, 1, 70), (3, 20, 3, 3), [1, 1], [0, 1], [1, 1], True, 1),
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("name", ODD_SHAPES)
def test_convolutions_of_odd_shapes(name: str, threads: int) -> None:
    torch.manual_seed(0)
    sizes, taps, *window, transposed, groups = ODD_SHAPES[name]
    x, w = torch.randn(sizes), torch.randn(taps)
    bias = torch.randn(taps[1] * groups if transposed else taps[0])
    rest = [*window, transposed, [0] * (len(sizes) - 2), groups]
    for added in (bias, None):
        expected = aten.convolution(exact(x), exact(w), exact(added), *rest)
        run("aten::convolution.out", F32, expected, x, w, added, *rest, threads=threads)


LEFT_OUT = {  # Sizes, weight, stride, padding, dilation, groups.
    "negative_padding": ((2, 8, 12, 9), (16, 1, 3, 5), [1, 2], [1, 2], [2, 3], 8),
    "one_tap_behind": ((2, 2, 1, 2), (1, 2, 2, 1), [2, 2], [3, 0], [3, 3], 1),
    "one_tap_of_many_channels": ((1, 40, 2, 12), (20, 40, 2, 1), [3, 1], [4, 0], [4, 1], 1),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_taps_that_reach_no_element_are_left_out(name: str) -> None:
    sizes, taps, *window, groups = LEFT_OUT[name]
    x, w = torch.randn(sizes), torch.randn(taps)
    rest = [*window, False, [0, 0], groups]
    run("aten::convolution.out", F32, aten.convolution(exact(x), exact(w), None, *rest), x, w, None,
        *rest)  # fmt: skip


def test_a_transposed_convolution_that_padding_takes_all_of_is_empty() -> None:
    x, w = torch.randn(2, 6, 5, 1), torch.randn(6, 5, 2, 2)
    rest = [[4, 4], [0, 1], [1, 1], True, [1, 0], 1]
    expected = aten.convolution(x, w, None, *rest)
    assert tuple(expected.shape) == (2, 5, 19, 0)
    run("aten::convolution.out", F32, expected, x, w, None, *rest)
    mask = [True, True, True]
    outs = [Out(list(x.shape), F32), Out(list(w.shape), F32), Out([5], F32)]
    for found in PLUGIN.call(
        "aten::convolution_backward.out", expected, x, w, [5], *rest, mask, *outs
    ):
        assert not found.any()


@pytest.mark.parametrize("dtype", [F32, F64, F16])
def test_gradients_of_convolutions(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    source = Convolutions(3)
    for mask in [[True, True, True], [True, False, True], [False, True, False]] * 8:
        args = source.draw()
        if args is None:
            continue
        x, w, _, *rest = (a.to(dtype) if isinstance(a, torch.Tensor) else a for a in args)
        gradient = torch.randn_like(aten.convolution(exact(x), exact(w), None, *rest)).to(dtype)
        sizes = [gradient.shape[1]]
        want = aten.convolution_backward(*map(exact, (gradient, x, w)), sizes, *rest, mask)
        outs = [Out([0] if t is None else list(t.shape), dtype) for t in want]
        got = PLUGIN.call(
            "aten::convolution_backward.out", gradient, x, w, sizes, *rest, mask, *outs
        )
        for actual, expected in zip(got, want, strict=True):
            if expected is not None:
                compare(actual, expected)


def test_convolution_of_channels_last() -> None:
    x, w = draw(F32, 2, 6, 9, 7), draw(F32, 8, 3, 3, 2)
    rest = [2, 1], [1, 0], [1, 2], False, [0, 0], 2
    expected = aten.convolution(exact(x), exact(w), None, *rest)
    last = {"memory_format": torch.channels_last}
    run("aten::convolution.out", F32, expected.contiguous(**last), x.contiguous(**last), w, None,
        *rest)  # fmt: skip
    run("aten::convolution.out", F32, expected, x, w.contiguous(**last), None, *rest)


def test_convolution_of_nothing() -> None:
    x, w = draw(F32, 0, 3, 5, 5), draw(F32, 4, 3, 3, 3)
    rest = [1], [1], [1], False, [0], 1
    run("aten::convolution.out", F32, torch.empty(0, 4, 5, 5), x, w, None, *rest)


@pytest.mark.parametrize(
    ("weight", "rest", "reason"),
    [
        ((4, 3, 3, 3), ([1], [0], [1], False, [0], 2), "as many channels"),
        ((4, 2, 3, 3), ([0], [0], [1], False, [0], 1), "stride"),
        ((4, 2, 9, 3), ([1], [1], [1], False, [0], 1), "larger than the padded input"),
        ((4, 2, 3, 3), ([1, 1, 1], [1], [1], False, [0], 1), "one item per spatial dimension"),
        ((2, 4, 3, 3), ([1], [1], [1], True, [1], 1), "output_padding"),
        ((4, 2, 3), ([1], [0], [1], False, [0], 1), "same rank"),
    ],
)
def test_convolution_refuses(weight: tuple[int, ...], rest: tuple[Any, ...], reason: str) -> None:
    args = draw(F32, 1, 2, 5, 5), draw(F32, *weight), None, *rest
    with pytest.raises(KernelError, match=reason):
        PLUGIN.call("aten::convolution.out", *args, Out([1, 4, 5, 5], F32))


def test_products_refuse() -> None:
    a, b = draw(F32, 2, 3), draw(F32, 4, 5)
    with pytest.raises(KernelError, match="columns of the first matrix"):
        PLUGIN.call("aten::mm.out", a, b, Out([2, 5], F32))
    with pytest.raises(KernelError, match="last dimensions must be of one size"):
        PLUGIN.call("aten::linear.out", a, b, None, Out([2, 4], F32))
    with pytest.raises(KernelError, match="temporary memory"):
        PLUGIN.call("aten::mm.out", a, b[:3], Out([2, 5], F32), temp=False)


def pooled(call: Callable[[], Any]) -> Any:
    """Return eager's result, None where it refuses the arguments."""
    try:
        return call()
    except RuntimeError:
        return None


@pytest.mark.parametrize("dtype", [*DTYPES, I64])
@pytest.mark.parametrize("threads", [1, 2])
def test_poolings(dtype: torch.dtype, threads: int) -> None:
    torch.manual_seed(0)
    source = random.Random(threads)
    options = {"threads": threads}
    for i in range(120 if dtype is F32 else 40):
        kernel = [source.randint(1, 5) for _ in range(source.choice([1, 2]))]
        stride = source.choice([[], [1], [2], [source.randint(1, 4), source.randint(1, 4)]])
        padding = [source.randint(0, k // 2) for k in kernel]
        window = kernel, stride, padding
        dilation, ceil = source.choice([[1], [1], [2], [1, 3]]), source.random() < 0.5
        x = draw(dtype, *[2] * (i % 2), 3, source.randint(5, 30), source.randint(5, 30))
        average = aten.avg_pool2d, ceil, source.random() < 0.5, source.choice([None, None, 3, -2])
        want = pooled(lambda x=x, w=window, a=average: a[0](exact(x), *w, *a[1:]))
        if want is not None:
            want = want.trunc() if dtype is I64 else want
            run("aten::avg_pool2d.out", dtype, want, x, *window, *average[1:], **options)
        if dtype.is_floating_point and i % 3 == 0:
            x[..., 2, 2], x[0, ..., 0:3] = torch.nan, -torch.inf
        arguments = *window, dilation, ceil
        want = pooled(lambda x=x, a=arguments: aten.max_pool2d_with_indices(x, *a))
        if want is not None:
            outs = [Out(list(w.shape), w.dtype) for w in want]
            name = "aten::max_pool2d_with_indices.out"
            results = PLUGIN.call(name, x, *arguments, *outs, **options)
            alone = PLUGIN.call("etx::max_pool2d.out", x, *arguments, outs[0], **options)
            for actual, expected in zip((*results, *alone), (*want, want[0]), strict=True):
                torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


ODD_PLANES = [  # Sizes, kernel, stride, padding, dilation.
    ((2, 70, 31, 1), [5, 5], [1, 1], [2, 2], [1, 1]),
    ((3, 9, 1, 40), [1, 7], [1, 2], [0, 3], [1, 1]),
    ((40, 29, 2), [2, 2], [1, 1], [0, 0], [1, 1]), ((33, 14, 7), [5, 5], [2, 2], [2, 2], [1, 1]),
    ((5, 75, 17), [7, 7], [3, 3], [3, 3], [1, 1]), ((4, 50, 9), [3, 2], [1, 1], [1, 1], [2, 3]),
    ((3, 9, 1), [2, 2], [1, 1], [1, 1], [1, 2]),
    ((2, 3, 90, 101), [5, 9], [1, 1], [2, 4], [1, 1]),
    ((2, 3, 12, 3000), [2, 3], [2, 2], [1, 1], [1, 1]),
    ((300, 4, 4), [4, 4], [4, 4], [0, 0], [1, 1]),
    ((41, 14, 7), [2, 2], [2, 2], [0, 0], [1, 1]), ((41, 14, 7), [2, 2], [2, 2], [1, 1], [1, 1]),
    ((9, 28, 14), [3, 3], [3, 3], [1, 1], [1, 1]), ((9, 30, 7), [2, 2], [1, 1], [1, 1], [1, 1]),
]  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", ODD_PLANES, ids=str)
def test_poolings_of_odd_shapes(shape: tuple[Any, ...], threads: int) -> None:
    torch.manual_seed(0)
    sizes, *window, dilation = shape
    x = torch.randn(sizes)
    for ceil, counts in product((False, True), (False, True)):
        rest = *window, ceil, counts, None
        want = aten.avg_pool2d(exact(x), *rest)
        run("aten::avg_pool2d.out", F32, want, x, *rest, threads=threads)
    x[..., :2, 0], x[..., -1, -1] = -torch.inf, torch.nan
    for ceil in (False, True):
        want = pooled(lambda c=ceil: aten.max_pool2d_with_indices(x, *window, dilation, c)[0])
        if want is not None:
            rest = *window, dilation, ceil, Out(list(want.shape), F32)
            (actual,) = PLUGIN.call("etx::max_pool2d.out", x, *rest, threads=threads)
            assert torch.equal(actual.nan_to_num(9), want.nan_to_num(9))


SHORT_LINES = [((300, 64), [1]), ((49, 3, 7, 64), [3]), ((9, 64, 100), [1]), ((500, 3, 2, 3), [2]),
               ((7, 2, 300), [0]), ((130, 40), [0]), ((20, 129, 33), [1]), ((3, 5, 7, 11), [1, 2]),
               ((200, 17), [1]), ((2, 8, 6000), [1]), ((30, 1, 70, 12), [1, 3]), ((60, 1, 7), [1]),
               ((9, 3, 49, 7), [2]), ((150, 2), [1]), ((4, 90, 3), [2]), ((8, 5, 128, 2), [2]),
               ((130, 16), [1]), ((3, 5, 60, 3), [2])]  # fmt: skip


@pytest.mark.parametrize("dtype", [F32, F64, I64])
@pytest.mark.parametrize("threads", [1, 2])
def test_reductions_of_short_lines(dtype: torch.dtype, threads: int) -> None:
    torch.manual_seed(0)
    for (sizes, dims), keep in product(SHORT_LINES, (False, True)):
        x = draw(dtype, *sizes)
        want = exact(x).sum(dims, keep)
        run("aten::sum.IntList_out", dtype, want, x, dims, keep, None, threads=threads)
        if dtype.is_floating_point:
            want = exact(x).mean(dims, keep)
            run("aten::mean.out", dtype, want, x, dims, keep, None, threads=threads)
            x[..., 1] = torch.nan
        for name, extreme in (("amax", x.amax), ("amin", x.amin)):
            want = extreme(dims, keep)
            run(f"aten::{name}.out", dtype, want, x, dims, keep, threads=threads)


@pytest.mark.parametrize("dtype", DTYPES)
def test_pool_gradient_and_adaptive_pooling(dtype: torch.dtype) -> None:
    x = draw(dtype, 2, 3, 9, 8)
    window = [3, 2], [2, 1], [1, 1], [1, 1], False
    values, indices = aten.max_pool2d_with_indices(x, *window)
    gradient = torch.randn_like(values)
    want = aten.max_pool2d_with_indices_backward(gradient, x, *window, indices)
    name = "aten::max_pool2d_with_indices_backward.grad_input"
    run(name, dtype, want, gradient, x, *window, indices)
    for size in ([1, 1], [4, 3], [9, 8], [12, 1]):
        want = aten._adaptive_avg_pool2d(exact(x), size)
        run("aten::_adaptive_avg_pool2d.out", dtype, want, x, size)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_softmax(dtype: torch.dtype, threads: int) -> None:
    torch.manual_seed(0)
    for shape in [(7,), (3, 5), (4, 33), (2, 12, 40, 40), (0, 3), (3, 90, 5), (2, 3, 600), ()]:
        x = draw(dtype, *shape) * 8
        if x.numel() > 20:
            x.view(-1)[3] = -torch.inf
        for dim in range(-max(1, x.dim()), max(1, x.dim())):
            for name in ("_softmax", "_log_softmax"):
                want = getattr(aten, name)(exact(x), dim, False)
                run(f"aten::{name}.out", dtype, want, x, dim, False, threads=threads)
    x = draw(F16, 4, 9)
    run("aten::_softmax.out", F32, x.double().softmax(1), x, 1, True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("affine", [False, True])
def test_normalisations(dtype: torch.dtype, affine: bool) -> None:
    torch.manual_seed(0)

    def parameters(*sizes: int) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        return (draw(dtype, *sizes), draw(dtype, *sizes)) if affine else (None, None)

    for shape, kept in [((4, 16), 1), ((2, 3, 384), 1), ((2, 3, 5), 2), ((7, 1), 1), ((0, 4), 1)]:
        x, normalized = draw(dtype, *shape), list(shape[-kept:])
        pair = parameters(*normalized)
        want = aten.native_layer_norm(exact(x), normalized, *map(exact, pair), 1e-5)
        run("aten::native_layer_norm.out", dtype, want, x, normalized, *pair, 1e-5)
    for n, c, points, group in [(2, 8, (5, 5), 2), (1, 6, (7,), 3), (3, 4, (2,), 4),
                                (2, 4, (5, 7), 2), (1, 2, (33, 40), 1)]:  # fmt: skip
        x, pair, size = draw(dtype, n, c, *points), parameters(c), torch.Size(points).numel()
        want = aten.native_group_norm(exact(x), *map(exact, pair), n, c, size, group, 1e-5)
        run("aten::native_group_norm.out", dtype, want, x, *pair, n, c, size, group, 1e-5)
        check_batch_norm(x, pair, draw(dtype, c), draw(dtype, c).abs() + 0.5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("points", [(), (1,), (3,), (3, 5), (4, 4)], ids=str)
def test_batch_norms_of_few_points(dtype: torch.dtype, points: tuple[int, ...]) -> None:
    """Channels are worked on side by side, in blocks that end within one."""
    torch.manual_seed(0)
    for batch, channels in ((2, 1), (2, 90), (5, 300)):
        x, mean = draw(dtype, batch, channels, *points), draw(dtype, channels)
        pair = draw(dtype, channels), draw(dtype, channels)
        for given in (pair, (None, None), (pair[0], None), (None, pair[1])):
            check_batch_norm(x, given, mean, draw(dtype, channels).abs() + 0.5)


def check_batch_norm(x: torch.Tensor, pair: Any, mean: torch.Tensor, var: torch.Tensor) -> None:
    given = exact(x), *map(exact, pair)
    want = aten._native_batch_norm_legit_no_training(*given, exact(mean), exact(var), 0.1, 1e-5)
    run("aten::_native_batch_norm_legit_no_training.out", x.dtype, want, x, *pair, mean, var, 0.1,
        1e-5)  # fmt: skip
    want = aten._native_batch_norm_legit.no_stats(*given, True, 0.1, 1e-5)
    run("aten::_native_batch_norm_legit.no_stats_out", x.dtype, want, x, *pair, True, 0.1, 1e-5)
    for training in (True, False):
        running = [exact(mean).clone(), exact(var).clone()]
        want = aten._native_batch_norm_legit(*given, *running, training, 0.1, 1e-5)
        outs = [Out(list(w.shape), x.dtype) for w in want]
        name = "aten::_native_batch_norm_legit.out"
        results = PLUGIN.call(name, x, *pair, mean, var, training, 0.1, 1e-5, *outs)
        for actual, expected in zip(results, [*running, *want], strict=True):
            compare(actual, expected)


@pytest.mark.parametrize("level", ["base", "v3"])
def test_lower_instruction_set_levels(
    level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second copy of the library chooses again; where there is one level, it is tested twice."""
    library = shutil.copy(etx_kernels_portable.library_path(), tmp_path / f"{level}.so")
    monkeypatch.setenv("ETX_KERNELS_ISA", level)
    monkeypatch.setattr(sys.modules[__name__], "PLUGIN", Plugin(str(library)))
    for check in (test_products, test_convolutions, test_poolings, test_softmax):
        check(F32, 1)
    test_convolutions_of_small_maps(F32, 2)
    test_depthwise_convolutions_of_volumes((2, 3, 3))
    test_normalisations(F32, True)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_fourier_transforms(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    compound = torch.complex64 if dtype is F32 else torch.complex128
    for sizes, dim in [((8,), [0]), ((3, 12, 5), [1]), ((2, 7, 30), [1, 2]), ((6, 10, 1), [2, 0])]:
        x = draw(dtype, *sizes)
        for normalization in range(3):
            for onesided in (True, False):
                want = aten._fft_r2c(x.double(), dim, normalization, onesided)
                out = Out(list(want.shape), compound)
                (got,) = PLUGIN.call("aten::_fft_r2c.out", x, dim, normalization, onesided, out)
                compare(torch.view_as_real(got), torch.view_as_real(want))
            given = torch.complex(x, draw(dtype, *sizes))
            for forward in (True, False):
                want = aten._fft_c2c(given.to(torch.complex128), dim, normalization, forward)
                out = Out(list(sizes), compound)
                (got,) = PLUGIN.call("aten::_fft_c2c.out", given, dim, normalization, forward, out)
                compare(torch.view_as_real(got), torch.view_as_real(want))
            half = aten._fft_r2c(x, dim, 0, True)
            last = x.shape[dim[-1]]
            want = aten._fft_c2r(half.to(torch.complex128), dim, normalization, last)
            out = Out(list(want.shape), dtype)
            (got,) = PLUGIN.call("aten::_fft_c2r.out", half, dim, normalization, last, out)
            compare(got, want)


TRANSFORMED = (
    *range(1, 71), 101, 160, 202, 320, 400, 441, 480, 509, 512, 600, 1000, 1009, 1024, 1200, 2018,
    4096,
)  # fmt: skip


@pytest.mark.parametrize("dtype", [F32, F64])
def test_fourier_transforms_of_sizes(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    compound = torch.complex64 if dtype is F32 else torch.complex128

    def check(name: str, want: torch.Tensor, x: torch.Tensor, dim: int, *rest: Any) -> torch.Tensor:
        made = compound if want.is_complex() else dtype
        got, again = (
            PLUGIN.call(name, x, [dim], *rest, Out(list(want.shape), made), threads=threads)[0]
            for threads in (1, 3)
        )
        torch.testing.assert_close(again, got, rtol=0, atol=0)
        if want.is_complex():
            compare(torch.view_as_real(got), torch.view_as_real(want))
        else:
            compare(got, want)
        return got

    for n in TRANSFORMED:
        lines = 67 if n == 4096 else 1 + n % 19
        for dim in (0, 1):
            x = draw(dtype, *((n, lines) if dim == 0 else (lines, n)))
            z = torch.complex(x, draw(dtype, *x.shape))
            for forward in (True, False):
                want = aten._fft_c2c(z.to(torch.complex128), [dim], 0, forward)
                check("aten::_fft_c2c.out", want, z, dim, 0, forward)
            want = aten._fft_r2c(x.double(), [dim], 0, True)
            half = check("aten::_fft_r2c.out", want, x, dim, 0, True)
            want = aten._fft_c2r(half.to(torch.complex128), [dim], 2, n)
            check("aten::_fft_c2r.out", want, half, dim, 2, n)
