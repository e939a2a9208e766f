# SPDX-License-Identifier: BSD-3-Clause
"""Integer operators against exact sums: equal to the last bit where a result is int8."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from arguments import Over
from etx_schema.targets.rows import in_place
from harness import PLUGIN, KernelError, Out
from integer_reference import (
    Geometry,
    Output,
    conv,
    interpolate,
    linear,
    pack,
    pack_groups,
    pack_int4,
    quantize_rows,
    windows,
)
from intercept import rows

INF = float("inf")
ROWS = (*range(1, 18), 40)
DEPTHS = (1, 3, 4, 5, 8, 31, 64, 67)
COLUMNS = (1, 3, 15, 16, 17, 32, 47, 65)


def call(name: str, *args: Any) -> torch.Tensor:
    (result,) = PLUGIN.call(f"etx::{name}", *args)
    return result


def bytes_of(*shape: int, low: int = -128, high: int = 127) -> torch.Tensor:
    return torch.randint(low, high + 1, shape).to(torch.int8)


def int8_out(*shape: int) -> Out:
    return Out(shape, torch.int8)


def scales_of(n: int, depth: int) -> torch.Tensor:
    return (torch.rand(n) + 0.1) / (64 * (depth + 1) ** 0.5)


def bias_of(n: int) -> torch.Tensor:
    return torch.randint(-5000, 5000, (n,)).int()


def sums_of(weight: torch.Tensor) -> torch.Tensor:
    return weight.flatten(1).sum(1).int()


def check_linear(x: torch.Tensor, w: torch.Tensor, zero: int, output: Output) -> None:
    n, k = w.shape
    bias, scale = (bias_of(n) if k % 2 else None), scales_of(n, k)
    operands = x, pack(w), sums_of(w), bias, scale
    got = call("quantized_linear.out", *operands, zero, *output.args, int8_out(*x.shape[:-1], n))
    want = output.requantize(linear(x, w, bias, zero), scale)
    assert torch.equal(got, want)


@pytest.mark.parametrize("rows", ROWS)
def test_linear_of_odd_sizes(rows: int) -> None:
    torch.manual_seed(rows)
    for k in DEPTHS:
        for n in COLUMNS:
            check_linear(bytes_of(rows, k), bytes_of(n, k), k % 5 - 2, Output(k % 7 - 3))


@pytest.mark.parametrize("zero", [-128, 127])
@pytest.mark.parametrize("value", [-128, 127])
@pytest.mark.parametrize("weight", [-128, 127])
def test_linear_of_extreme_values(zero: int, value: int, weight: int) -> None:
    x = torch.full((3, 5, 259), value, dtype=torch.int8)
    w = torch.full((33, 259), weight, dtype=torch.int8)
    check_linear(x, w, zero, Output(zero, -100, 90))
    check_linear(x, w, zero, Output(-zero - 1))


def test_large_linear_in_blocks_of_rows() -> None:
    torch.manual_seed(0)
    check_linear(bytes_of(700, 700), bytes_of(100, 700), 9, Output(-9))


@pytest.mark.parametrize(("n", "k"), [(1055, 520), (700, 1101), (513, 1024)])
def test_one_row_of_large_weights(n: int, k: int) -> None:
    """Larger than what is near, which is read in other ways."""
    torch.manual_seed(n)
    x, w, scales = torch.randn(1, k), bytes_of(n, k), scales_of(n, k)
    check_linear(bytes_of(1, k), w, 7, Output(-9))
    q, scale, zero = quantize_rows(x)
    operands = x, pack(w), sums_of(w), scales, torch.randn(n), -3.0, INF
    got = call("dynamic_linear.out", *operands, Out((1, n), torch.float32))
    real = w.double() * scales.double()[:, None]
    check_float(got, (q - zero).double() * scale, real, operands[4], (-3, INF))


def test_sums_up_to_the_end_of_int32() -> None:
    """All 255 * 128, as deep as is allowed, with a bias that leaves no room."""
    depth = (2**31 - 1) // (255 * 128)
    x = torch.full((1, depth), 127, dtype=torch.int8)
    w = torch.full((1, depth), -128, dtype=torch.int8)
    bias = torch.tensor([-(2**31 - 1 - depth * 255 * 128)]).int()
    scale = torch.tensor([2.0**-24])
    args = (pack(w), sums_of(w), bias, scale, -128, 0, -128, 127, int8_out(1, 1))
    assert call("quantized_linear.out", x, *args).tolist() == [[-128]]
    assert linear(x, w, bias, -128).item() == -(2**31) + 1
    args = (pack(w), sums_of(w), bias - 1, scale, -128, 0, -128, 127, int8_out(1, 1))
    with pytest.raises(KernelError, match="fit int32"):
        call("quantized_linear.out", x, *args)


@pytest.mark.parametrize("scale", [1e-45, 1e-30, 1.0, 1e30, 3e38])
def test_scales_of_any_size(scale: float) -> None:
    torch.manual_seed(0)
    x, w = bytes_of(4, 9), bytes_of(20, 9)
    factor, output = torch.full((20,), scale), Output(5, -77, 99)
    operands = x, pack(w), sums_of(w), None, factor
    got = call("quantized_linear.out", *operands, 3, *output.args, int8_out(4, 20))
    assert torch.equal(got, output.requantize(linear(x, w, None, 3), factor))


def test_halves_are_rounded_to_even() -> None:
    x = torch.arange(-10, 11).reshape(-1, 1).to(torch.int8)
    w = torch.ones(1, 1, dtype=torch.int8)
    operands = x, pack(w), sums_of(w), None, torch.tensor([0.5])
    got = call("quantized_linear.out", *operands, 0, 3, -128, 127, int8_out(21, 1))
    assert got.flatten().tolist() == [round(i / 2) + 3 for i in range(-10, 11)]


GEOMETRIES = [
    Geometry(),
    Geometry((1, 1), padding=(0, 0, 0, 0)),
    Geometry((1, 1), (2, 2), padding=(0, 0, 0, 0)),
    Geometry((3, 3), (2, 2)),
    Geometry((7, 5), (2, 1), (3, 2, 1, 0)),
    Geometry((3, 3), (1, 2), (2, 2, 2, 2), (2, 2)),
    Geometry((2, 3), (1, 1), (0, 4, 5, 1), (3, 1)),
    Geometry((1, 9), padding=(0, 8, 0, 8)),
]
SPACED = [
    Geometry((3, 3), spacing=(2, 2)),
    Geometry((4, 4), (1, 1), (2, 2, 1, 3), spacing=(2, 3)),
    Geometry((3, 2), (2, 1), (1, 1, 1, 1), (2, 1), (3, 2)),
]


def check_conv(
    x: torch.Tensor, weight: torch.Tensor, g: Geometry, groups: int, zero: int, output: Output
) -> None:
    n = weight.shape[0]
    bias, scale = bias_of(n), scales_of(n, weight[0].numel())
    want = output.requantize(conv(x, weight, bias, zero, g, groups), scale)
    operands = x, pack(weight, groups), sums_of(weight), bias, scale
    lists = *g.lists(), list(g.spacing), groups, zero
    got = call("quantized_conv.out", *operands, *lists, *output.args, int8_out(*want.shape))
    assert torch.equal(got, want)


@pytest.mark.parametrize("geometry", [*GEOMETRIES, *SPACED], ids=str)
@pytest.mark.parametrize(("channels", "columns"), [(1, 1), (3, 17), (5, 8), (16, 33), (64, 16)])
def test_conv(geometry: Geometry, channels: int, columns: int) -> None:
    torch.manual_seed(channels)
    weight = bytes_of(columns, *geometry.kernel, channels)
    for zero in (-128, 5, 127):
        x = bytes_of(2, 9, 11, channels)
        check_conv(x, weight, geometry, 1, zero, Output(zero // 2))


@pytest.mark.parametrize("stride", [1, 2])
def test_large_conv_in_blocks_of_lines(stride: int) -> None:
    torch.manual_seed(stride)
    geometry = Geometry((3, 3), (stride, stride))
    x, weight = bytes_of(2, 75, 62 * stride, 128), bytes_of(20, 3, 3, 128)
    check_conv(x, weight, geometry, 1, 9, Output(-3))


@pytest.mark.parametrize("groups", [2, 3, 6])
@pytest.mark.parametrize("geometry", [GEOMETRIES[0], GEOMETRIES[1], GEOMETRIES[5], SPACED[0]])
def test_conv_in_groups(geometry: Geometry, groups: int) -> None:
    torch.manual_seed(groups)
    weight = bytes_of(groups * 5, *geometry.kernel, 18 // groups)
    check_conv(bytes_of(1, 7, 8, 18), weight, geometry, groups, -7, Output(1))


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("channels", [1, 3, 5, 17, 64, 65, 130])
def test_depthwise_conv(geometry: Geometry, channels: int) -> None:
    torch.manual_seed(channels)
    weight = bytes_of(channels, *geometry.kernel, 1)
    bias, scale = bias_of(channels), scales_of(channels, weight[0].numel())
    plain = weight.flatten(1).T.contiguous()
    for zero in (-128, 5, 127):
        x, output = bytes_of(2, 9, 11, channels), Output(zero // 2, -120, 100)
        want = output.requantize(conv(x, weight, bias, zero, geometry, channels), scale)
        operands = x, plain, sums_of(weight), bias, scale, *geometry.lists(), zero
        out = int8_out(*want.shape)
        got = call("quantized_depthwise_conv.out", *operands, *output.args, out)
        assert torch.equal(got, want)


@pytest.mark.parametrize("kernel", [(3, 3), (5, 1), (6, 2), (7, 3), (4, 3)], ids=str)
@pytest.mark.parametrize(("height", "width"), [(33, 40), (8, 150), (9, 3)])
def test_depthwise_conv_of_lines_in_pairs(kernel: tuple[int, int], height: int, width: int) -> None:
    """Two lines of the output are computed at once; of parts and images one may be left."""
    torch.manual_seed(height)
    channels, geometry = 96, Geometry(kernel, padding=(2, 1, 3, 1))
    x, weight = bytes_of(3, height, width, channels), bytes_of(channels, *kernel, 1)
    bias, scale = bias_of(channels), scales_of(channels, weight[0].numel())
    want = Output(3).requantize(conv(x, weight, bias, -9, geometry, channels), scale)
    plain, sums = weight.flatten(1).T.contiguous(), sums_of(weight)
    operands = x, plain, sums, bias, scale, *geometry.lists(), -9, *Output(3).args
    for threads in (1, 2, 3):
        name, out = "etx::quantized_depthwise_conv.out", int8_out(*want.shape)
        (got,) = PLUGIN.call(name, *operands, out, threads=threads)
        assert torch.equal(got, want), threads
        assert PLUGIN.is_divided is (threads > 1 and height * width > 100)


@pytest.mark.parametrize("stride", [2, 1000, 2**31 - 1])
def test_depthwise_conv_of_one_window(stride: int) -> None:
    """Where there is no next window it does not matter how far away it would be."""
    torch.manual_seed(stride)
    geometry = Geometry((3, 5), (stride, stride), (0, 0, 0, 0))
    x, weight = bytes_of(2, 3, 5, 70), bytes_of(70, 3, 5, 1)
    bias, scale = bias_of(70), scales_of(70, 15)
    want = Output(3).requantize(conv(x, weight, bias, -9, geometry, 70), scale)
    plain, sums = weight.flatten(1).T.contiguous(), sums_of(weight)
    operands = x, plain, sums, bias, scale, *geometry.lists(), -9, *Output(3).args
    got = call("quantized_depthwise_conv.out", *operands, int8_out(*want.shape))
    assert torch.equal(got, want)


SHAPES = [
    ((3, 200), (3, 200)),
    ((2, 5, 7), (7,)),
    ((2, 5, 7), (5, 1)),
    ((1,), (4, 3)),
    ((4, 1), (1, 9)),
    ((3, 0), (1,)),
]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("zeros", [(0, 0), (-128, 127), (5, -9)])
def test_add_and_mul(shapes: tuple[tuple[int, ...], ...], zeros: tuple[int, int]) -> None:
    torch.manual_seed(0)
    a, b = bytes_of(*shapes[0]), bytes_of(*shapes[1])
    left, right = a.float() - zeros[0], b.float() - zeros[1]
    shape = torch.broadcast_shapes(a.shape, b.shape)
    for output in (Output(), Output(-128, 0, 127), Output(99, -5, 5)):
        for p, q in ((0.37, 0.81), (1e-3, -2.5), (70.0, 1e-9)):
            args = p, zeros[0], q, zeros[1]
            got = call("quantized_add.out", a, b, *args, *output.args, int8_out(*shape))
            scaled = left * torch.tensor(p) + right * torch.tensor(q)
            assert torch.equal(got, output.round(scaled))
        args = 0.013, zeros[0], zeros[1]
        got = call("quantized_mul.out", a, b, *args, *output.args, int8_out(*shape))
        assert torch.equal(got, output.requantize(left * right, 0.013))


POOLS = [
    Geometry((2, 2), (2, 2), (0, 0, 0, 0)),
    Geometry((3, 3), (2, 2), (1, 1, 1, 1)),
    Geometry((3, 2), (1, 3), (0, 1, 2, 1)),
    Geometry((5, 5), (1, 1), (2, 2, 2, 2)),
]


@pytest.mark.parametrize("geometry", POOLS, ids=str)
@pytest.mark.parametrize("channels", [1, 3, 17, 300])
def test_pools(geometry: Geometry, channels: int) -> None:
    torch.manual_seed(channels)
    x = bytes_of(2, 8, 9, channels)
    kernel, stride, padding, _ = geometry.lists()
    want = windows(x, geometry, -128).amax(-1).to(torch.int8)
    out = int8_out(*want.shape)
    got = call("quantized_max_pool.out", x, kernel, stride, padding, [1, 1], out)
    assert torch.equal(got, want)
    ones = windows(torch.ones_like(x), geometry, 0).sum(-1)
    for zero in (-128, 7, 127):
        sums = windows(x.double() - zero, geometry, 0).sum(-1)
        for counts_padding in (False, True):
            whole = torch.full_like(ones, kernel[0] * kernel[1])
            count = whole if counts_padding else ones
            output = Output(zero // 2, -128, 120)
            args = kernel, stride, padding, counts_padding, 0.9, zero
            got = call("quantized_avg_pool.out", x, *args, *output.args, out)
            factor = torch.tensor(0.9) / count.float()
            assert torch.equal(got, output.requantize(sums, factor))


def test_max_pool_with_dilation() -> None:
    geometry = Geometry((3, 2), (2, 1), (1, 0, 1, 1), (2, 3))
    x = bytes_of(1, 9, 9, 20)
    want = windows(x, geometry, -128).amax(-1).to(torch.int8)
    got = call("quantized_max_pool.out", x, *geometry.lists(), int8_out(*want.shape))
    assert torch.equal(got, want)


@pytest.mark.parametrize("dims", [[1, 2], [-1], [0], [0, 3], [0, 1, 2, 3], []])
@pytest.mark.parametrize("keepdim", [False, True])
def test_mean(dims: list[int], keepdim: bool) -> None:
    torch.manual_seed(0)
    for channels in (1, 20, 300):
        x, zero, output = bytes_of(2, 5, 6, channels), -7, Output(11)
        sums = (x.double() - zero).sum(dims or None, keepdim=keepdim)
        count = x.numel() // max(sums.numel(), 1)
        want = output.requantize(sums, torch.tensor(1.7) / count)
        args = dims, keepdim, 1.7, zero, *output.args
        got = call("quantized_mean.out", x, *args, int8_out(*want.shape))
        assert torch.equal(got, want)


@pytest.mark.parametrize("channels", [1, 3, 15, 16, 17, 300])
def test_interpolate(channels: int) -> None:
    torch.manual_seed(channels)
    edges = torch.tensor([[0, 0], [0, 2048], [0, 1], [1, 2047], [2, 0]], dtype=torch.int32)
    for zero in (-128, -7, 127):
        x, output = bytes_of(2, 3, 3, channels), Output(-zero // 2, -100, 128 - abs(zero))
        for ys, xs in ((edges, edges[:1]), (edges[-1:], edges.flip(0)), (edges, edges)):
            want = output.requantize(interpolate(x, ys, xs, zero), 1.3 / 2048**2)
            args = ys, xs, 1.3, zero, *output.args
            got = call("quantized_interpolate.out", x, *args, int8_out(*want.shape))
            assert torch.equal(got, want)


@pytest.mark.parametrize("point", [[-1, 0], [0, -1], [0, 2049], [2, 1], [3, 0]])
def test_points_outside_of_the_image_are_refused(point: list[int]) -> None:
    inside, points = torch.zeros(2, 2, dtype=torch.int32), torch.tensor([[0, 0], point]).int()
    for ys, xs in ((inside, points), (points, inside)):
        args = bytes_of(1, 3, 3, 4), ys, xs, 1.0, 0, *Output().args
        with pytest.raises(KernelError, match="rows and columns"):
            call("quantized_interpolate.out", *args, int8_out(1, 2, 2, 4))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
@pytest.mark.parametrize("of", [torch.int8, torch.uint8, torch.bool, torch.float32, torch.int32])
def test_lookup(dtype: torch.dtype, of: torch.dtype) -> None:
    low = torch.iinfo(dtype).min
    x = torch.randint(low, low + 256, (3, 1001)).to(dtype)
    table = torch.randn(256).mul(50).to(of)
    got = call("lookup.out", x, table, Out(x.shape, of))
    assert torch.equal(got, table[x.long() - low])


def float_rows(rows: int, k: int) -> torch.Tensor:
    x = torch.randn(rows, k) * torch.logspace(-3, 3, rows)[:, None]
    x[0] = 0
    return x


def check_float(
    got: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    bounds: tuple[float, float] = (-INF, INF),
) -> None:
    """Compare with clamp(x weight + bias): as exact as sums of float32 are."""
    want, size = x.double() @ weight.double().T, x.double().abs() @ weight.double().abs().T
    if bias is not None:
        want, size = want + bias, size + bias.abs()
    assert bool(((got - want.clamp(*bounds)).abs() <= 1e-6 * size).all())


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 9, 17])
@pytest.mark.parametrize("k", [1, 4, 7, 64, 99])
def test_dynamic_linear(rows: int, k: int) -> None:
    torch.manual_seed(rows)
    for n in COLUMNS:
        x, w = float_rows(rows, k), bytes_of(n, k)
        scales, bias = scales_of(n, k), torch.randn(n) if n % 2 else None
        q, scale, zero = quantize_rows(x)
        operands = x, pack(w), sums_of(w), scales, bias, -3.0, INF
        got = call("dynamic_linear.out", *operands, Out((rows, n), torch.float32))
        real = w.double() * scales.double()[:, None]
        check_float(got, (q - zero).double() * scale, real, bias, (-3, INF))


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 13])
@pytest.mark.parametrize(("k", "size"), [(7, 7), (8, 100), (64, 32), (72, 24), (100, 16), (33, 8)])
def test_int4_linear(rows: int, k: int, size: int) -> None:
    torch.manual_seed(rows)
    groups = -(-k // size)
    for n in COLUMNS:
        x, w = float_rows(rows, k), bytes_of(n, k, low=-8, high=7)
        group_of = torch.arange(k) // size
        sums = torch.stack([w[:, group_of == g].sum(1) for g in range(groups)]).int()
        scales, bias = torch.rand(groups, n) / k, torch.randn(n) if n % 2 else None
        q, scale, zero = quantize_rows(x)
        out, packed = Out((rows, n), torch.float32), (pack_int4(w), pack_groups(sums))
        for own in (scales, scales.bfloat16()):
            real = w.double() * own.double()[group_of].T
            operands = x, *packed, pack_groups(own), bias, size, n, -2.0, 2.0
            got = call("dynamic_linear_int4.out", *operands, out)
            check_float(got, (q - zero).double() * scale, real, bias, (-2, 2))
        real = w.double() * scales.double()[group_of].T
        operands = x, packed[0], pack_groups(scales), bias, size, n, -INF, INF
        check_float(call("weight_only_linear_int4.out", *operands, out), x, real, bias)


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_sums_of_weights_that_a_file_makes_up(rows: int) -> None:
    """Columns with right sums are right; the others wrap around, which sanitizers would see."""
    torch.manual_seed(rows)
    n, k, wrong = 33, 64, slice(0, 33, 4)
    x, w, right = float_rows(rows, k) + 1, bytes_of(n, k, low=-8, high=7), torch.arange(n) % 4 != 0
    sums, scales = sums_of(w), torch.rand(n) / k
    sums[wrong] = torch.tensor([-(2**31), 2**31 - 1, 100794368]).int().repeat(3)
    q, scale, zero = quantize_rows(x)
    real = w.double() * scales.double()[:, None]
    parts = sums[None], scales[None]
    calls = {
        "dynamic_linear.out": (x, pack(w), sums, scales, None),
        "dynamic_linear_int4.out": (x, pack_int4(w), *map(pack_groups, parts), None, k, n),
    }
    for name, operands in calls.items():
        got = call(name, *operands, -INF, INF, Out((rows, n), torch.float32))
        check_float(got[:, right], (q - zero).double() * scale, real[right], None)


@pytest.mark.parametrize(("low", "high"), [(0, 5), (-5, 0), (-1, 5), (-5, 1), (-3, 3.1), (-5, 5)])
@pytest.mark.parametrize(("k", "size"), [(96, 32), (88, 88), (40, 24)])
def test_int4_rows_of_any_zero_point(low: float, high: float, k: int, size: int) -> None:
    torch.manual_seed(k)
    for count in (1, 5):
        n, groups = 33, -(-k // size)
        x = torch.rand(count, k) ** 3 * (high - low) + low
        x[:, :2] = torch.tensor([low, high])
        w, group_of = bytes_of(n, k, low=-8, high=7), torch.arange(k) // size
        sums = torch.stack([w[:, group_of == g].sum(1) for g in range(groups)]).int()
        scales = torch.rand(groups, n) / k
        q, scale, zero = quantize_rows(x)
        groups = pack_groups(sums), pack_groups(scales)
        operands = x, pack_int4(w), *groups, None, size, n, -INF, INF
        got = call("dynamic_linear_int4.out", *operands, Out((count, n), torch.float32))
        real = w.double() * scales.double()[group_of].T
        check_float(got, (q - zero).double() * scale, real, None)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 13, 30])
@pytest.mark.parametrize("k", [1, 4, 7, 64, 99])
def test_weight_only_linear(rows: int, k: int) -> None:
    torch.manual_seed(rows)
    for n in COLUMNS:
        x, w = float_rows(rows, k), bytes_of(n, k)
        scales, bias = scales_of(n, k), torch.randn(n) if n % 2 else None
        operands = x, pack(w), scales, bias, -INF, INF
        got = call("weight_only_linear.out", *operands, Out((rows, n), torch.float32))
        check_float(got, x, w.double() * scales.double()[:, None], bias)


def test_results_lie_on_arguments() -> None:
    """As their rows of the target say, on any argument of the result's dtype and sizes."""
    torch.manual_seed(0)
    for x, y in ((bytes_of(300), bytes_of(300)), (bytes_of(256), bytes_of(256))):
        calls: list[tuple[str, tuple[Any, ...]]] = [
            ("quantized_add.out", (x, y, 0.5, 3, 0.25, -4, *Output(1).args)),
            ("quantized_mul.out", (x, y, 0.01, 3, -4, *Output(1).args)),
        ]
        if len(x) == 256:
            calls.append(("lookup.out", (x, y)))
        for name, args in calls:
            want = call(name, *args, int8_out(*x.shape))
            assert torch.equal(call(name, *args, Over(0)), want)
            assert torch.equal(call(name, *args, Over(1)), want)
            same = (x, x, *args[2:])
            want = call(name, *same, int8_out(*x.shape))
            assert torch.equal(call(name, *same, Over(0)), want)


def test_every_operator_in_place_is_tested() -> None:
    names = {k for k, row in rows().items() if k.startswith("etx::") and in_place(row)}
    elsewhere = {"etx::polynomial.out"}  # test_series.py
    integer = {f"etx::{name}.out" for name in ("quantized_add", "quantized_mul", "lookup")}
    assert names == integer | elsewhere


def test_recurrent_layers_of_int8_have_one_group() -> None:
    side, rows = 16, 48
    x, state, out = torch.ones(2, 1, side), torch.ones(1, side), Out((2, 1, side), torch.float32)
    for low, high, groups in ((-8, 7, 2), (-8, 7, 1), (-128, 127, 1), (-128, 127, 2)):
        w = bytes_of(rows, side, low=low, high=high)
        packed = (pack_int4 if high == 7 else pack)(w), pack_groups(torch.ones(groups, rows))
        operands = x, state, *packed, *packed, None, None, False, False
        if high == 127 and groups > 1:
            with pytest.raises(KernelError, match="of int8 there is one"):
                call("weight_only_gru.out", *operands, out)
        else:
            call("weight_only_gru.out", *operands, out)
