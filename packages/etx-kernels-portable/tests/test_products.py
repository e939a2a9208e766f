# SPDX-License-Identifier: BSD-3-Clause
"""Products and convolutions of every dtype at the edges of tiles, next to eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import PLUGIN, KernelError, Out

aten = torch.ops.aten
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16,
          torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]  # fmt: skip
SIZES = [(1, 7, 5), (3, 33, 17), (4, 1, 16), (5, 40, 31), (13, 700, 33), (37, 9, 8),
         (1, 18, 1090), (8, 67, 130), (2, 0, 3), (1, 64, 1030), (6, 300, 1),
         (70, 40, 21), (200, 33, 4), (30, 3, 70), (131, 17, 67)]  # fmt: skip
BATCHES = [(1, 9, 33, 17), (3, 1, 64, 255), (12, 1, 64, 255), (4, 10, 40, 31),
           (7, 130, 520, 9), (2, 33, 0, 3), (0, 2, 3, 4), (5, 2, 3, 1)]  # fmt: skip
# Packed a block of columns at a time, some with columns left for dot products.
BLOCKS = [(65, 64, 17), (70, 64, 2500), (67, 300, 1001), (96, 80, 2051), (130, 1100, 321),
          (100, 2000, 4)]  # fmt: skip
CONVOLUTIONS = [
    *[(4, 6, 5, 3, 1, 9, 9, 1), (8, 8, 6, 3, 1, 6, 5, 2), (3, 5, 9, 3, 2, 1, 1, 1)],
    *[(6, 12, 7, 1, 1, 0, 1, 3), (2, 4, 33, 3, 3, 2, 2, 1)],
]
# Channels of a group in and out, height, width, kernel, stride, padding, dilation, groups.
TRANSPOSED = [
    *[(3, 4, 9, 5, 3, 2, 1, 1, 2), (20, 5, 7, 29, 4, 3, 1, 1, 1), (2, 9, 40, 1, 4, 3, 1, 1, 2)],
    *[(70, 9, 1, 1, 3, 2, 1, 1, 1), (70, 40, 1, 2, 5, 1, 1, 1, 1), (64, 3, 2, 27, 4, 1, 0, 1, 2)],
    *[(1, 6, 1, 21, 5, 1, 0, 1, 1), (40, 20, 5, 3, 2, 3, 0, 1, 1), (70, 8, 33, 2, 5, 2, 1, 2, 1)],
    *[(12, 4, 3, 17, 2, 4, 1, 1, 1), (19, 3, 31, 1, 4, 2, 0, 1, 2), (3, 5, 40, 2, 3, 3, 1, 1, 1)],
    *[(64, 40, 300, 3, 3, 2, 1, 1, 1), (8, 1, 21, 33, 4, 3, 0, 1, 1)],
    *[(1, 64, 1, 28, 3, 1, 1, 1, 2), (300, 300, 1, 11, 5, 1, 1, 1, 1)],
    *[(3, 96, 9, 2, 4, 2, 1, 1, 1)],
]
# The same, not transposed: thin images, lines with something between them, taps beyond the border.
THIN = [
    *[(1, 32, 40, 28, 7, 3, 3, 1, 1), (20, 1, 14, 7, 5, 3, 0, 1, 2), (5, 9, 2, 30, 3, 3, 1, 1, 1)],
    *[(1, 16, 9, 7, 1, 1, 0, 1, 1), (1, 1, 7, 17, 3, 1, 0, 1, 20), (1, 1, 2, 17, 7, 2, 3, 1, 16)],
    *[(1, 1, 7, 60, 5, 1, 0, 1, 9), (16, 12, 2, 14, 3, 3, 1, 1, 1), (4, 9, 19, 7, 3, 3, 6, 6, 1)],
]
# The same, with taps that most outputs do not reach: one of them alone reaches some.
FAR_TAPS = [
    *[(40, 36, 14, 14, 3, 1, 6, 6, 1), (33, 70, 28, 9, 3, 1, 18, 18, 2)],
    *[(32, 32, 17, 17, 9, 1, 8, 2, 1), (48, 40, 7, 50, 3, 3, 6, 6, 1)],
    *[(64, 32, 5, 60, 3, 2, 4, 4, 1), (32, 33, 30, 31, 3, 1, 40, 24, 3)],
    *[(65, 32, 21, 1, 3, 1, 12, 12, 1), (9, 17, 28, 28, 3, 1, 18, 18, 2)],
]


def whole(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Return small whole numbers, whose sums are exact, or wrap, in every dtype."""
    return torch.randint(-3 if dtype.is_signed else 0, 4, shape).to(dtype)


def exact(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor.long()


def check(kernel: str, expected: torch.Tensor, *arguments: Any) -> None:
    dtype = arguments[0].dtype
    (actual,) = PLUGIN.call(kernel, *arguments, Out(list(expected.shape), dtype))
    assert torch.equal(actual, expected.to(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_products(dtype: torch.dtype, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b, bias = whole(dtype, m, k), whole(dtype, k, n), whole(dtype, n)
    product = exact(a) @ exact(b)
    check("aten::mm.out", product, a, b)
    check("aten::addmm.out", 2 * exact(bias) + 3 * product, bias, a, b, 2, 3)
    check("aten::linear.out", product + exact(bias), a, b.T.contiguous(), bias)
    three = a.expand(3, m, k).contiguous(), b.expand(3, k, n).contiguous()
    check("aten::bmm.out", product.expand(3, m, n), *three)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("sizes", BLOCKS, ids=str)
def test_blocks_of_columns(sizes: tuple[int, int, int], threads: int) -> None:
    m, k, n = sizes
    weight, image, bias = whole(torch.float32, m, k), whole(torch.float32, k, n), torch.arange(m)
    expected = weight @ image + bias[:, None]
    (actual,) = PLUGIN.call(
        *["aten::convolution.out", image.view(1, k, 1, n), weight.view(m, k, 1, 1), bias.float()],
        *[[1, 1], [0, 0], [1, 1], False, [0, 0], 1, Out([1, m, 1, n], torch.float32)],
        threads=threads,
    )
    assert torch.equal(actual.view(m, n), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_batches_of_rows(dtype: torch.dtype, threads: int) -> None:
    """The transpose of each second matrix, a different one each, is the one that is multiplied."""
    for batch, m, k, n in BATCHES:
        a, b = whole(dtype, batch, m, k), whole(dtype, batch, n, k)
        expected = (exact(a) @ exact(b).transpose(1, 2)).to(dtype)
        (actual,) = PLUGIN.call("etx::bmm_nt.out", a, b, Out([batch, m, n], dtype), threads=threads)
        assert torch.equal(actual, expected), (batch, m, k, n)


@pytest.mark.parametrize(
    ("shapes", "dtypes", "reason"),
    [
        (((2, 3, 4), (2, 5, 3)), ("float32", "float32"), "last dimensions must be of one size"),
        (((2, 3, 4), (3, 5, 4)), ("float32", "float32"), "the same batch size"),
        (((3, 4), (5, 4)), ("float32", "float32"), "batches of matrices"),
        (((2, 3, 4), (2, 5, 4)), ("float32", "float64"), "the same dtype"),
        (((2, 3, 4), (2, 5, 4)), ("bool", "bool"), "floating and integer"),
    ],
)
def test_other_batches_of_rows_are_refused(shapes: Any, dtypes: Any, reason: str) -> None:
    a, b = (torch.zeros(s, dtype=getattr(torch, d)) for s, d in zip(shapes, dtypes, strict=True))
    with pytest.raises(KernelError, match=reason):
        PLUGIN.call("etx::bmm_nt.out", a, b, Out([2, 3, 5], a.dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sizes", [(1031, 263), (257, 1030), (100, 4099)], ids=str)
def test_one_row_of_large_weights(dtype: torch.dtype, sizes: tuple[int, int]) -> None:
    n, k = sizes
    x, w, bias = whole(dtype, 1, k), whole(dtype, n, k), whole(dtype, n)
    check("aten::linear.out", exact(x) @ exact(w).T + exact(bias), x, w, bias)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sizes", CONVOLUTIONS, ids=str)
def test_convolutions(dtype: torch.dtype, sizes: tuple[int, ...]) -> None:
    cin, cout, size, kernel, stride, padding, dilation, groups = sizes
    x, bias = whole(dtype, 2, groups * cin, size, size + 1), whole(dtype, groups * cout)
    weight = whole(dtype, groups * cout, cin, kernel, kernel)
    rest = [stride] * 2, [padding] * 2, [dilation] * 2, False, [0, 0], groups
    expected = aten.convolution(exact(x), exact(weight), exact(bias), *rest)
    check("aten::convolution.out", expected, x, weight, bias, *rest)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("transposed", [False, True], ids=["forward", "transposed"])
def test_convolutions_of_thin_images(transposed: bool, threads: int) -> None:
    for sizes in TRANSPOSED if transposed else THIN + FAR_TAPS:
        cin, cout, height, width, kernel, stride, padding, dilation, groups = sizes
        x = whole(torch.float32, 3, groups * cin, height, width)
        outer, inner = (cin, cout) if transposed else (cout, cin)
        weight = whole(torch.float32, groups * outer, inner, kernel, kernel)
        rest = [stride] * 2, [padding] * 2, [dilation] * 2, transposed, [0, 0], groups
        for bias in (None, whole(torch.float32, groups * cout)):
            expected = aten.convolution(x, weight, bias, *rest)
            out = Out(list(expected.shape), torch.float32)
            call = "aten::convolution.out", x, weight, bias, *rest
            (actual,) = PLUGIN.call(*call, out, threads=threads)
            assert torch.equal(actual, expected), sizes


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("sizes", [(1, 130, 67), (8, 768, 40), (12, 64, 5), (70, 130, 67)], ids=str)
def test_sums_are_float32(dtype: torch.dtype, sizes: tuple[int, int, int]) -> None:
    """One rounding at the end, whichever way a product is made."""
    m, k, n = sizes
    a, w, bias = (torch.randn(shape).to(dtype) for shape in ((m, k), (n, k), (n,)))
    product = a.double() @ w.double().T
    for kernel, expected, arguments in (
        ("linear", product + bias.double(), (a, w, bias)),
        ("mm", product, (a, w.T.contiguous())),
    ):
        (actual,) = PLUGIN.call(f"aten::{kernel}.out", *arguments, Out([m, n], dtype))
        rounding = torch.finfo(dtype).eps / 2
        torch.testing.assert_close(
            actual.double(), expected, rtol=1.01 * rounding, atol=1e-5 * k**0.5
        )


@pytest.mark.parametrize("threads", range(1, 9))
@pytest.mark.parametrize(("m", "k", "n"), [(1, 577, 1000), (128, 256, 100), (5, 3000, 100)])
def test_a_number_of_threads_has_its_bits(m: int, k: int, n: int, threads: int) -> None:
    """Another number may have others, within rounding; integers have the same with any."""
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(size, generator=generator) for size in ((m, k), (k, n)))
    whole = [(10 * each).to(torch.int32) for each in (a, b)]
    for x, y in ((a, b), whole):
        out = Out([m, n], x.dtype)
        (found,) = PLUGIN.call("aten::mm.out", x, y, out, threads=threads)
        (again,) = PLUGIN.call("aten::mm.out", x, y, out, threads=threads)
        assert torch.equal(found, again)
        if x.dtype == torch.int32:
            assert torch.equal(found, (x.double() @ y.double()).to(torch.int32))
        else:
            torch.testing.assert_close(found, x @ y, rtol=1e-4, atol=1e-3)


def test_taps_that_lie_outside_add_nothing() -> None:
    """An infinite one spoils the outputs for which it reads the image, as in eager."""
    x, weight = whole(torch.float32, 1, 40, 28, 28), whole(torch.float32, 36, 40, 3, 3)
    weight[:, :, 0, 0] = torch.inf
    rest = [1, 1], [18, 18], [18, 18], False, [0, 0], 1
    out = Out([1, 36, 28, 28], torch.float32)
    (actual,) = PLUGIN.call("aten::convolution.out", x, weight, None, *rest, out)
    finite = actual.isfinite()
    assert finite.sum() == 36 * (28 * 28 - 10 * 10)
    assert not finite[..., 18:, 18:].any()
    assert torch.equal(actual[finite], aten.convolution(x, weight, None, *rest)[finite])
