# SPDX-License-Identifier: BSD-3-Clause
"""Pools, their gradients and bags of embeddings are eager's: options, dtypes, NaN, samples."""

import itertools
import math

import pytest
import torch
from compared import Compared, compare, run_samples
from etx_exir import to_edge
from etx_exir.errors import EtxError
from etx_exir.lower.decompose_windows import WINDOWS
from programs import Calls
from torch.export import Dim
from torch.nn import functional as F

aten = torch.ops.aten
FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
POOLED_3D = (aten.max_pool3d_with_indices.default, aten.avg_pool3d.default)
BAGS = (aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
SAMPLED = {
    ("nn.functional.avg_pool3d", torch.float32): aten.avg_pool3d.default,
    ("nn.functional.avg_pool3d", torch.int64): aten.avg_pool3d.default,
    ("nn.functional.adaptive_avg_pool3d", torch.float32): aten._adaptive_avg_pool3d.default,
    ("nn.functional.max_pool3d", torch.float32): aten.max_pool3d_with_indices.default,
    ("nn.functional.max_pool3d", torch.int64): aten.max_pool3d_with_indices.default,
    ("nn.functional.adaptive_max_pool1d", torch.float32): aten.adaptive_max_pool2d.default,
    ("nn.functional.adaptive_max_pool2d", torch.float32): aten.adaptive_max_pool2d.default,
    ("nn.functional.adaptive_max_pool3d", torch.float32): aten.adaptive_max_pool3d.default,
    ("nn.functional.embedding_bag", torch.float32): aten._embedding_bag_forward_only.default,
}
GRADIENTS = {
    "nn.functional.avg_pool2d": aten.avg_pool2d_backward.default,
    "nn.functional.adaptive_avg_pool2d": aten._adaptive_avg_pool2d_backward.default,
}


def check(op, *args, **named):
    compare(WINDOWS[op], op, *args, **named)


def test_each_has_samples():
    assert {*SAMPLED.values(), *GRADIENTS.values(), *BAGS} == set(WINDOWS)


@pytest.mark.parametrize(("name", "dtype"), SAMPLED, ids=str)
def test_samples(name, dtype):
    with Compared(WINDOWS) as compared:
        run_samples(name, dtype, stride=23 if "max_pool3d" in name else 1)
    assert compared.calls.keys() == {SAMPLED[name, dtype]}


@pytest.mark.parametrize("name", GRADIENTS)
def test_samples_of_gradients(name):
    with Compared(WINDOWS) as compared:
        run_samples(name, torch.float32, backward=True)
    assert GRADIENTS[name] in compared.calls


def volume(dtype, *lead):
    x = torch.randn(*lead, 5, 7, 6, dtype=torch.float64) * 9
    return x.to(dtype)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATING, torch.int64], ids=str)
def test_average(dtype, ceil_mode):
    windows = [
        ([2], [], 0),
        ([3], [2], [1]),
        ([3, 2, 4], [2, 1, 3], [1, 0, 2]),
        ([2, 3, 1], [3], 0),
    ]
    x, op = volume(dtype, 2, 3), aten.avg_pool3d.default
    if dtype in (torch.float16, torch.bfloat16):
        op = rounded_once(op)
    for window, counted, divisor in itertools.product(windows, (True, False), (None, 5)):
        for given in (x, x[0], x[:0], x.transpose(2, 4)):
            options = (*window, ceil_mode, counted, divisor)
            compare(WINDOWS[aten.avg_pool3d.default], op, given, *options, scale=9)


def rounded_once(op):
    """Eager of float32, since it has no such operator of halves."""

    def compute(x, *args):
        return op(x.float(), *args).to(x.dtype)

    return compute


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("out", [(1, 1, 1), (2, 3, 4), (5, 7, 6), (1, 9, 2), (6, 1, 8)], ids=str)
def test_adaptive(out, dtype):
    for x in (volume(dtype, 2, 3), volume(dtype, 3), volume(dtype, 2, 3).transpose(2, 4)):
        check(aten._adaptive_avg_pool3d.default, x, out, scale=9)
        check(aten.adaptive_max_pool3d.default, x, out)
        check(aten.adaptive_max_pool2d.default, x.flatten(0, -4), out[1:])
    odd = torch.tensor([0.0, -0.0, 1, 1, -2, math.inf, -math.inf, math.nan]).to(dtype)
    for seed in range(4):
        chosen = torch.randint(8, (2, 5, 7, 6), generator=torch.Generator().manual_seed(seed))
        check(aten.adaptive_max_pool3d.default, odd[chosen], out)
        check(aten.adaptive_max_pool2d.default, odd[chosen], out[1:])


def test_adaptive_to_nothing():
    check(aten.adaptive_max_pool2d.default, torch.ones(1, 2, 4, 4), [0, 2])
    check(aten.adaptive_max_pool3d.default, torch.ones(1, 2, 4, 4, 4), [2, 0, 2])


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATING, torch.int64, torch.uint8], ids=str)
def test_maximum(dtype, ceil_mode):
    windows = [
        ([2], [], 0, 1),
        ([3], [2], [1], [1]),
        ([2, 3, 2], [1, 2, 3], [1, 1, 0], [2, 1, 3]),
        ([4, 2, 3], [2], [2, 1, 1], [1, 2, 2]),
    ]
    op, x = aten.max_pool3d_with_indices.default, volume(dtype, 2, 3)
    odd = torch.tensor([0.0, -0.0, 1, 1, -2, math.inf, -math.inf, math.nan])
    for window in windows:
        for given in (x, x[0], x[:0], x.transpose(2, 4)):
            check(op, given, *window, ceil_mode)
        if dtype.is_floating_point:
            for seed in range(4):
                generator = torch.Generator().manual_seed(seed)
                chosen = torch.randint(8, (2, 5, 7, 6), generator=generator)
                check(op, odd[chosen].to(dtype), *window, ceil_mode)
            check(op, torch.full((1, 5, 7, 6), -math.inf, dtype=dtype), *window, ceil_mode)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_gradients_of_averages(dtype):
    op = aten.avg_pool2d_backward.default
    windows = [([2], [2], 0), ([3], [2], [1]), ([3, 2], [1, 3], [1, 0]), ([2, 3], [3, 1], [0, 1])]
    x = torch.randn(2, 3, 8, 6).to(dtype)
    for window, ceil_mode, counted in itertools.product(windows, (False, True), (True, False)):
        for divisor in (None, 7):
            options = (*window, ceil_mode, counted, divisor)
            grad = torch.randn_like(aten.avg_pool2d(x, *options))
            check(op, grad, x, *options, scale=8)
            check(op, grad[0], x[0], *options, scale=8)
    grad[0, 0, 0, 0], grad[1, 2, 1, 0] = math.inf, math.nan
    check(op, grad, x, *options, scale=8)
    for out in ((4, 3), (3, 4), (1, 1), (8, 6), (11, 5), (5, 13)):
        grad = torch.randn(2, 3, *out).to(dtype)
        check(aten._adaptive_avg_pool2d_backward.default, grad, x, scale=8)
        check(aten._adaptive_avg_pool2d_backward.default, grad[0], x[0], scale=8)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("op", BAGS, ids=str)
def test_bags(op, mode, dtype):
    weight = torch.randn(8, 5, dtype=torch.float64).to(dtype)
    weight[3] = weight[6]
    indices = torch.tensor([1, 2, 4, 6, 4, 3, 2, 2])
    starts = ([0, 2, 2, 5], [0], [0, 0, 0], [0, 1, 4, 8, 8], list(range(8)))
    each = torch.rand(8).to(dtype)
    for start, padding in itertools.product(starts, (-1, 2)):
        for kind in (torch.int64, torch.int32):
            given = (weight, indices.to(kind), torch.tensor(start, dtype=kind), False, mode, False)
            check(op, *given, None, False, padding, scale=4)
            if mode == 0:
                check(op, *given, each, False, padding, scale=4)
            ends = torch.tensor([*start, 8], dtype=kind)
            check(op, *given[:2], ends, *given[3:], None, True, padding, scale=4)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("op", BAGS, ids=str)
def test_bags_of_nothing(op, mode):
    weight, none = torch.randn(8, 5), torch.tensor([], dtype=torch.int64)
    check(op, weight, none, torch.tensor([0, 0]), False, mode)
    check(op, weight, none, torch.tensor([0, 0]), False, mode, False, None, True)
    check(
        op, weight, torch.tensor([4, 4]), torch.tensor([0, 1]), False, mode, False, None, False, 4
    )
    least = torch.full((8, 5), -math.inf)
    check(op, least, torch.tensor([4, 5, 4]), torch.tensor([0, 1, 3]), False, mode)


DYNAMIC = {
    "average": lambda x: F.avg_pool3d(x, 3, 2, 1, count_include_pad=False),
    "integers": lambda x: F.avg_pool3d(x.long(), 3, 2, 1, count_include_pad=False),
    "adaptive average": lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)),
    "maximum": lambda x: F.max_pool3d(x, 3, 2, 1, return_indices=True),
    "largest": lambda x: F.adaptive_max_pool3d(x, 1, return_indices=True),
    "largest of planes": lambda x: F.adaptive_max_pool2d(x[0], 1, return_indices=True),
    "gradient": lambda x: aten.avg_pool2d_backward(
        aten.avg_pool2d(x[0], [3], [2], [1]), x[0], [3], [2], [1], False, False, None
    ),
    "bags": lambda x: F.embedding_bag(
        x[0, 0, 0].abs().long().clamp(max=3), torch.arange(8.0).view(4, 2), mode="sum"
    ),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_sizes(name):
    shapes = (({d: Dim(f"s{d}", min=5, max=16) for d in (0, 2, 3, 4)},),)
    given = (torch.randn(6, 3, 7, 8, 9),)
    program = torch.export.export(Calls(DYNAMIC[name]), given, dynamic_shapes=shapes)
    manager = to_edge(program)
    manager.to_executorch()
    module = manager.exported_program().module(check_guards=False)
    for sizes in ((6, 3, 7, 8, 9), (5, 3, 10, 5, 12), (7, 3, 5, 11, 6)):
        x = torch.randn(sizes) * 3
        torch.testing.assert_close(module(x), DYNAMIC[name](x), rtol=1e-5, atol=1e-5)


def test_windows_of_dynamic_sizes_are_refused():
    shapes = (({2: Dim("n", min=5, max=16)},),)
    call = Calls(lambda x: F.adaptive_max_pool2d(x, 3))
    program = torch.export.export(call, (torch.ones(1, 2, 7, 7),), dynamic_shapes=shapes)
    with pytest.raises(EtxError, match=r"adaptive_max_pool2d.*dynamic sizes"):
        to_edge(program).to_executorch()
