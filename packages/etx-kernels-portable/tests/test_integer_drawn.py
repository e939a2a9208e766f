# SPDX-License-Identifier: BSD-3-Clause
"""Integer operators of drawn shapes, windows, groups and scales, next to exact sums."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from arguments import Out
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from integer_reference import Geometry, Output, conv, linear, pack
from test_integer import bias_of, bytes_of, call, int8_out, sums_of

DRAWN = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
ZEROS = st.sampled_from((-128, -127, -1, 0, 1, 126, 127)) | st.integers(-128, 127)
SEEDS = st.integers(0, 2**31)


@st.composite
def outputs(draw: st.DrawFn) -> Output:
    low, high = sorted((draw(ZEROS), draw(ZEROS)))
    return Output(draw(ZEROS), low, high)


STRIDES = st.integers(1, 3) | st.just(2**31 - 1)
"""The last is how far away the next window would be, where there is one alone."""


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    def pair(most: int) -> tuple[int, int]:
        return draw(st.integers(1, most)), draw(st.integers(1, most))

    top, left, bottom, right = (draw(st.integers(0, 4)) for _ in range(4))
    stride = draw(STRIDES), draw(STRIDES)
    return Geometry(pair(4), stride, (top, left, bottom, right), pair(3), pair(2))


def scales(n: int, depth: int, extreme: bool) -> torch.Tensor:
    """Return scales at which most results lie within int8; `extreme`: of any positive float32."""
    if extreme:
        return torch.exp2(torch.empty(n).uniform_(-140, 120)).clamp(min=2.0**-149)
    return (torch.rand(n) + 0.1) / (64 * (depth + 1) ** 0.5)


def fits(x: torch.Tensor, geometry: Geometry) -> bool:
    sizes = geometry.spread(x).shape[1:3]
    reach = [(k - 1) * d + 1 for k, d in zip(geometry.kernel, geometry.dilation, strict=True)]
    return all(size >= r for size, r in zip(sizes, reach, strict=True))


@DRAWN
@given(*(st.integers(1, most) for most in (20, 150, 70)), ZEROS, outputs(), st.booleans(), SEEDS)
def test_linear(
    rows: int, k: int, n: int, zero: int, output: Output, extreme: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    x, w = bytes_of(rows, k), bytes_of(n, k)
    bias, scale = (bias_of(n) if seed % 2 else None), scales(n, k, extreme)
    operands = x, pack(w), sums_of(w), bias, scale, zero
    got = call("quantized_linear.out", *operands, *output.args, int8_out(rows, n))
    assert torch.equal(got, output.requantize(linear(x, w, bias, zero), scale))


SIZES = st.integers(1, 9)
FEW = st.sampled_from((16, 32)) | st.integers(1, 70)
"""Channels; 16 and 32 are some of a vector, of which a level may take several points at once."""


@DRAWN
@given(
    *(geometries(), SIZES, SIZES, st.integers(1, 4), st.integers(1, 9), st.integers(1, 19)),
    *(ZEROS, outputs(), st.booleans(), SEEDS),
)
def test_conv(
    geometry: Geometry,
    height: int,
    width: int,
    groups: int,
    channels: int,
    columns: int,
    zero: int,
    output: Output,
    extreme: bool,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    x = bytes_of(2, height, width, groups * channels)
    assume(fits(x, geometry))
    weight = bytes_of(groups * columns, *geometry.kernel, channels)
    n = groups * columns
    bias, scale = bias_of(n), scales(n, weight[0].numel(), extreme)
    want = output.requantize(conv(x, weight, bias, zero, geometry, groups), scale)
    operands = x, pack(weight, groups), sums_of(weight), bias, scale, *geometry.lists()
    rest = list(geometry.spacing), groups, zero, *output.args
    assert torch.equal(call("quantized_conv.out", *operands, *rest, int8_out(*want.shape)), want)


@DRAWN
@given(
    *(geometries(), st.integers(1, 40), st.integers(1, 24), st.integers(1, 2)),
    *(st.sampled_from((32, 36, 48, 64, 100, 132)), st.integers(1, 70), ZEROS, outputs(), SEEDS),
)
def test_conv_of_many_channels(
    geometry: Geometry,
    height: int,
    width: int,
    groups: int,
    channels: int,
    columns: int,
    zero: int,
    output: Output,
    seed: int,
) -> None:
    """Windows that a level may read where they lie."""
    torch.manual_seed(seed)
    geometry = replace(geometry, spacing=(1, 1))
    x = bytes_of(1 + seed % 2, height, width, groups * channels)
    assume(fits(x, geometry))
    n = groups * columns
    weight = bytes_of(n, *geometry.kernel, channels)
    bias, scale = bias_of(n), scales(n, weight[0].numel(), False)
    want = output.requantize(conv(x, weight, bias, zero, geometry, groups), scale)
    operands = x, pack(weight, groups), sums_of(weight), bias, scale, *geometry.lists()
    rest = list(geometry.spacing), groups, zero, *output.args
    assert torch.equal(call("quantized_conv.out", *operands, *rest, int8_out(*want.shape)), want)


@DRAWN
@given(geometries(), st.sampled_from((1, 2, 4)), st.integers(2, 4), ZEROS, outputs(), SEEDS)
def test_groups_that_share_a_block(
    geometry: Geometry, parts: int, count: int, zero: int, output: Output, seed: int
) -> None:
    torch.manual_seed(seed)
    groups, channels, columns = parts * count, seed % 3 + 1, seed % 4 + 1
    x = bytes_of(2, 6, 7, groups * channels)
    assume(fits(x, geometry))
    weight = bytes_of(groups * columns, *geometry.kernel, channels)
    wide = torch.zeros(parts, count, columns, *geometry.kernel, count, channels, dtype=torch.int8)
    for i in range(count):
        wide[:, i, ..., i, :] = weight.view(parts, count, columns, *geometry.kernel, channels)[:, i]
    packed = pack(wide.reshape(groups * columns, *geometry.kernel, count * channels), parts)
    bias, scale = bias_of(groups * columns), scales(groups * columns, weight[0].numel(), False)
    want = output.requantize(conv(x, weight, bias, zero, geometry, groups), scale)
    operands = x, packed, sums_of(weight), bias, scale, *geometry.lists()
    rest = list(geometry.spacing), groups, zero, *output.args
    assert torch.equal(call("quantized_conv.out", *operands, *rest, int8_out(*want.shape)), want)


@DRAWN
@given(
    *(geometries(), SIZES, SIZES, st.integers(1, 4), st.integers(1, 9), st.integers(1, 35)),
    *(ZEROS, st.booleans(), SEEDS),
)
def test_dynamic_conv(
    geometry: Geometry,
    height: int,
    width: int,
    groups: int,
    channels: int,
    columns: int,
    zero: int,
    bounded: bool,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    x = bytes_of(2, height, width, groups * channels)
    assume(fits(x, geometry))
    weight = bytes_of(groups * columns, *geometry.kernel, channels)
    n = groups * columns
    bias = torch.randn(n) if seed % 2 else None
    unit, factors = torch.rand(1, dtype=torch.float64) + 1e-3, torch.rand(n) - 0.5
    limits = (-50.0, 1e3) if bounded else (-math.inf, math.inf)
    want = conv(x, weight, None, zero, geometry, groups) * (unit * factors)
    want = (want if bias is None else want + bias).clamp(*limits)
    given_ = pack(weight, groups), sums_of(weight), factors, bias, *geometry.lists()
    operands = x, unit, torch.tensor([zero]), *given_, list(geometry.spacing), groups, *limits
    got = call("dynamic_conv.out", *operands, Out(tuple(want.shape), torch.float32))
    assert bool(((got - want).abs() <= 1e-6 * (want.abs() + 1)).all())


@DRAWN
@given(geometries(), SIZES, SIZES, FEW, ZEROS, outputs(), st.booleans(), SEEDS)
def test_depthwise_conv(
    geometry: Geometry,
    height: int,
    width: int,
    channels: int,
    zero: int,
    output: Output,
    extreme: bool,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    own = Geometry(geometry.kernel, geometry.stride, geometry.padding, geometry.dilation)
    x, weight = bytes_of(2, height, width, channels), bytes_of(channels, *own.kernel, 1)
    assume(fits(x, own))
    bias, scale = bias_of(channels), scales(channels, weight[0].numel(), extreme)
    want = output.requantize(conv(x, weight, bias, zero, own, channels), scale)
    operands = x, weight.flatten(1).T.contiguous(), sums_of(weight), bias, scale, *own.lists()
    rest = zero, *output.args, int8_out(*want.shape)
    assert torch.equal(call("quantized_depthwise_conv.out", *operands, *rest), want)


@DRAWN
@given(st.integers(1, 300), ZEROS, ZEROS, outputs(), SEEDS)
def test_add_and_mul(n: int, a_zero: int, b_zero: int, output: Output, seed: int) -> None:
    torch.manual_seed(seed)
    a, b = bytes_of(n), bytes_of(n)
    p, q = (float(s) for s in torch.exp2(torch.empty(2).uniform_(-60, 60)))
    left, right = a.float() - a_zero, b.float() - b_zero
    got = call("quantized_add.out", a, b, p, a_zero, q, b_zero, *output.args, int8_out(n))
    assert torch.equal(got, output.round(left * torch.tensor(p) + right * torch.tensor(q)))
    got = call("quantized_mul.out", a, b, p, a_zero, b_zero, *output.args, int8_out(n))
    assert torch.equal(got, output.requantize(left * right, p))
