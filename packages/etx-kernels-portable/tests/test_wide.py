# SPDX-License-Identifier: BSD-3-Clause
"""Reductions of more elements side by side than the blocks that kernels convert, next to eager."""

from __future__ import annotations

import pytest
import torch
from harness import PLUGIN, Out

aten = torch.ops.aten
HALVES = (torch.float16, torch.bfloat16)
FLOATING = (torch.float32, torch.float64, *HALVES)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
DTYPES = (*FLOATING, *INTEGERS, torch.bool)
SHAPES = ((3, 600), (2, 1030), (150, 300), (2, 3, 2060))


def numbers(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Return 0 and 1 and few others, whose sums are exact in every dtype."""
    generator = torch.Generator().manual_seed(len(shape) + shape[-1])
    x = (torch.rand(shape, generator=generator) < 0.3).to(torch.float32)
    negative = torch.rand(shape, generator=generator) < 0.1
    return torch.where(negative & dtype.is_signed, -1.0, x).to(dtype)


def check(kernel: str, expected: torch.Tensor, *arguments: object) -> None:
    (actual,) = PLUGIN.call(
        f"aten::{kernel}", *arguments, Out(list(expected.shape), expected.dtype)
    )
    bound = {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(expected.dtype, 1e-5)
    torch.testing.assert_close(actual, expected, rtol=bound, atol=bound, msg=kernel)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reductions_in_every_dtype(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x = numbers(dtype, shape)
    for dim in range(len(shape)):
        check("any.dims_out", aten.any.dims(x, [dim]), x, [dim], False)
        for asked in (None, torch.float32, torch.int64):
            if dtype.is_floating_point and asked == torch.int64:
                continue
            total = aten.sum.dim_IntList(x, [dim], dtype=asked)
            check("sum.IntList_out", total, x, [dim], False, asked)
            check("prod.int_out", aten.prod.dim_int(x, dim, dtype=asked), x, dim, False, asked)
            check("cumsum.out", aten.cumsum(x, dim, dtype=asked), x, dim, asked)
        for name in ("amax", "amin"):
            check(f"{name}.out", getattr(aten, name)(x, [dim]), x, [dim], False)
        if dtype.is_floating_point:
            check("mean.out", aten.mean.dim(x, [dim]), x, [dim], False, None)
            variance = aten.var.correction(x, [dim], correction=1)
            check("var.correction_out", variance, x, [dim], 1, False)
            check("_softmax.out", aten._softmax(x, dim, False), x, dim, False)


@pytest.mark.parametrize("dim", [0, 1])
def test_means_of_large_numbers_are_finite(dim: int) -> None:
    """Their sum is not. What eager makes of an infinite number depends on where it stands."""
    largest = torch.finfo(torch.float32).max
    x = torch.tensor([[largest, largest, largest * 0.5], [-largest, 1.0, 3e38]]).repeat(3, 5)
    for given in (x, torch.full_like(x, 3e38)):
        expected = aten.var_mean.correction(given, [dim], correction=1)
        outs = [Out(list(each.shape), each.dtype) for each in expected]
        found = PLUGIN.call("aten::var_mean.correction_out", given, [dim], 1, False, *outs)
        torch.testing.assert_close(found, list(expected), rtol=1e-5, atol=0)


@pytest.mark.parametrize("dim", [0, 1])
def test_a_mean_of_large_doubles_is_finite(dim: int) -> None:
    x = torch.tensor([[1, 1, 0.5], [-1, 0, 0.8]], dtype=torch.float64).repeat(3, 5) * 1.79e308
    expected = (x * 2**-10).mean(dim) * 2**10
    outs = [Out(list(expected.shape), expected.dtype) for _ in range(2)]
    found = PLUGIN.call("aten::var_mean.correction_out", x, [dim], 1, False, *outs)
    torch.testing.assert_close(found[1], expected, rtol=1e-5, atol=0)


def check_where_finite(found: list[torch.Tensor], expected: tuple[torch.Tensor, ...]) -> None:
    """Eager sums rows of float32 in float32, and so has no mean of some of them; it is finite.

    Of equal elements eager's results are what rounding leaves of a difference.
    """
    for actual, value in zip(found, expected, strict=True):
        assert actual[value.isfinite()].isfinite().all()
    mean, value = found[1], expected[1]
    assert mean.isfinite().all()
    torch.testing.assert_close(mean[value.isfinite()], value[value.isfinite()])


LARGE = ((1, 1, 1, 1), (1, -1, 0.9, -0.9), (1, 0.5, 0.9, 0.99), (-1, 0.2, 0.9, 0.8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("parts", LARGE, ids=str)
def test_norms_of_large_numbers_are_finite(parts: tuple[float, ...], dtype: torch.dtype) -> None:
    """Where eager's are: the sum of a row is too large, or its variance, for a number."""
    largest = torch.finfo(dtype).max
    x = (torch.tensor(parts, dtype=torch.float64) * largest).to(dtype).repeat(2, 6, 5)
    calls = (
        ("native_layer_norm.out", aten.native_layer_norm, (x, [20], None, None, 1e-5)),
        ("native_group_norm.out", aten.native_group_norm, (x, None, None, 2, 6, 20, 3, 1e-5)),
        (
            "_native_batch_norm_legit.no_stats_out",
            aten._native_batch_norm_legit.no_stats,
            (x, None, None, True, 0.1, 1e-5),
        ),
    )
    for kernel, function, arguments in calls:
        expected = function(*arguments)
        outs = [Out(list(each.shape), each.dtype) for each in expected]
        found = PLUGIN.call(f"aten::{kernel}", *arguments, *outs)
        check_where_finite(found, expected)


@pytest.mark.parametrize("scale", [3e38, 1.5e20, 1e-19, 1e-30, 1e-38], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("dim", [0, 1])
def test_deviations_are_finite_where_squares_are_not(
    dim: int, dtype: torch.dtype, scale: float
) -> None:
    """Nor zero where those are; eager sums squares in double."""
    x = (torch.rand((40, 50), generator=torch.Generator().manual_seed(0)) * scale).to(dtype)
    bound = 1e-2 if dtype == torch.bfloat16 else 1e-5
    for name in ("std", "var"):
        expected = getattr(aten, name).correction(x, [dim], correction=1)
        outs = Out(list(expected.shape), dtype), Out(list(expected.shape), dtype)
        (found,) = PLUGIN.call(f"aten::{name}.correction_out", x, [dim], 1, False, outs[0])
        pair = PLUGIN.call(f"aten::{name}_mean.correction_out", x, [dim], 1, False, *outs)
        assert expected.isfinite().all() or name == "var"
        torch.testing.assert_close(found, expected, rtol=bound, atol=0)
        assert torch.equal(found, pair[0])
        mean = getattr(aten, f"{name}_mean").correction(x, [dim], correction=1)[1]
        torch.testing.assert_close(pair[1], mean, rtol=bound, atol=0)
