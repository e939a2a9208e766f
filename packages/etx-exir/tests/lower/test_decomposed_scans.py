# SPDX-License-Identifier: BSD-3-Clause
"""Running results and scattered reductions are eager's: dtypes, ties, NaN, empty, samples."""

import itertools
import math

import pytest
import torch
from compared import Compared, compare, run_samples
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.errors import EtxError
from etx_exir.lower.decompose_scans import SCANS
from programs import Calls
from torch.export import Dim

aten = torch.ops.aten
FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGRAL = (torch.int64, torch.int32, torch.int8, torch.uint8)
RUNNING = (aten.cumprod.default, aten.cummax.default, aten.cummin.default)
REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
SAMPLED = {
    "cumprod": {aten.cumprod.default},
    "cummax": {aten.cummax.default},
    "cummin": {aten.cummin.default},
    "logcumsumexp": {aten.logcumsumexp.default},
    "scatter_reduce": {aten.scatter_reduce.two},
    "index_reduce": {aten.index_reduce.default},
    "_segment_reduce": {aten.segment_reduce.default},
}

OF_FLOATS = ("logcumsumexp", "_segment_reduce")


def check(op, *args, **named):
    compare(SCANS[op], op, *args, **named)


def test_each_has_samples():
    assert set().union(*SAMPLED.values()) == set(SCANS)


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, torch.float32) for name in SAMPLED),
        *((name, torch.int64) for name in SAMPLED if name not in OF_FLOATS),
    ],
    ids=str,
)
def test_samples(name, dtype):
    with Compared(SCANS) as compared:
        run_samples(name, dtype)
    assert compared.calls.keys() == SAMPLED[name]


@pytest.mark.parametrize("dtype", [*FLOATING, *INTEGRAL, torch.bool], ids=str)
@pytest.mark.parametrize("op", RUNNING, ids=str)
@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 33])
def test_lengths(length, op, dtype):
    x = (torch.randn(2, length, 3, dtype=torch.float64) * 3).to(dtype)
    for dim in (1, -2):
        check(op, x, dim)
    check(op, x.transpose(0, 1), 0)


@pytest.mark.parametrize("op", [*RUNNING, aten.logcumsumexp.default], ids=str)
def test_a_scalar(op):
    check(op, torch.tensor(2.5), 0)
    check(op, torch.tensor(math.nan), -1)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("op", [*RUNNING, aten.logcumsumexp.default], ids=str)
def test_odd_numbers(op, dtype):
    odd = torch.tensor([0.0, -0.0, 1, 2, 2, -3, math.inf, -math.inf, math.nan, 300, -700, 5e4])
    generator = torch.Generator().manual_seed(0)
    for _ in range(60):
        chosen = torch.randint(12, (11,), generator=generator)
        check(op, odd[chosen].to(dtype), 0)


@pytest.mark.parametrize("op", [aten.cummax.default, aten.cummin.default], ids=str)
def test_ties_and_limits(op):
    check(op, torch.tensor([3, 3, 1, 3, 4, 4, 0, 0]), 0)
    for dtype in INTEGRAL:
        limits = torch.iinfo(dtype)
        check(op, torch.tensor([limits.min, limits.max, limits.min, limits.max], dtype=dtype), 0)
    check(op, torch.tensor([True, False, True, False]), 0)


def test_a_product_overflows_as_in_eager():
    check(aten.cumprod.default, torch.tensor([1e30, 1e30, 1e-30, 0.0, 5.0]), 0)
    check(aten.cumprod.default, torch.tensor([200.0, 400.0, 0.01]).half(), 0)
    check(aten.cumprod.default, torch.tensor([2, 3, 5], dtype=torch.int8), 0, dtype=torch.float32)
    check(aten.cumprod.default, torch.tensor([2.5, 3.5, 5]), 0, dtype=torch.int32)


def test_a_sum_of_exponents_far_apart():
    least = torch.finfo(torch.float32).min
    check(aten.logcumsumexp.default, torch.tensor([least, least, -1e9, -800.0, 0.0, 90.0]), 0)
    check(aten.logcumsumexp.default, torch.full((300,), -math.inf), 0)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize(
    ("reduce", "dtype"),
    [
        *itertools.product(REDUCTIONS, [*FLOATING, *INTEGRAL]),
        *((reduce, torch.bool) for reduce in REDUCTIONS if reduce != "mean"),
    ],
    ids=str,
)
def test_scattered(reduce, dtype, include_self):
    into = (torch.randn(4, 5, 3, dtype=torch.float64) * 2).to(dtype)
    for dim, shape in ((0, (9, 4, 2)), (1, (3, 11, 3)), (-1, (4, 5, 1)), (2, (4, 5, 2))):
        index = torch.randint(into.shape[dim], shape)
        source = (torch.randn(12, 12, 3, dtype=torch.float64) * 2).to(dtype)
        named = {"include_self": include_self, "scale": 16}
        check(aten.scatter_reduce.two, into, dim, index, source, reduce, **named)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_scattered_nan_and_edges(reduce):
    op, places = aten.scatter_reduce.two, torch.tensor([0, 0, 1, 1, 2, 2, 3])
    odd = torch.tensor([math.nan, 1, 2, math.nan, math.inf, -math.inf, -math.inf])
    for include_self in (True, False):
        for into in (torch.zeros(5), torch.full((5,), math.nan)):
            check(op, into, 0, places, odd, reduce, include_self=include_self)
        for index in (torch.tensor(0), torch.tensor([0]), torch.tensor([], dtype=torch.int64)):
            source = torch.full(index.shape, 3.0)
            check(op, torch.tensor(2.0), 0, index, source, reduce, include_self=include_self)
        empty = torch.zeros(0, 2, dtype=torch.int64)
        check(op, torch.ones(3, 2), 0, empty, torch.ones(4, 2), reduce, include_self=include_self)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("reduce", ["sum", "mean", "prod"])
def test_halves_are_rounded_once(reduce, dtype):
    source = 1 + torch.randn(400).to(dtype) / 64
    places = torch.arange(400) % 2
    wide = torch.ones(2).scatter_reduce(0, places, source.float(), reduce).to(dtype)
    into = torch.ones(2, dtype=dtype)
    found = SCANS[aten.scatter_reduce.two](into, 0, places, source, reduce)
    torch.testing.assert_close(found, wide)


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *INTEGRAL], ids=str)
@pytest.mark.parametrize("reduce", REDUCTIONS[1:])
def test_index_reduce(reduce, dtype, include_self):
    op, named = aten.index_reduce.default, {"include_self": include_self, "scale": 16}
    into = (torch.randn(4, 5, dtype=torch.float64) * 2).to(dtype)
    for dim, shape in ((0, (9, 5)), (-1, (4, 7)), (1, (4, 1))):
        for kind in (torch.int64, torch.int32):
            index = torch.randint(into.shape[dim], (shape[dim],), dtype=kind)
            source = (torch.randn(shape, dtype=torch.float64) * 2).to(dtype)
            check(op, into, dim, index, source, reduce, **named)
    one = torch.tensor(3).to(dtype)
    check(op, one, 0, torch.tensor([0]), one + 1, reduce, **named)
    check(op, into, 0, torch.tensor([], dtype=torch.int64), into[:0], reduce, **named)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_scattered_of_dynamic_sizes(reduce):
    def scattered(into, index, source):
        return into.scatter_reduce(1, index, source, reduce)

    def inputs(rows, length):
        return torch.randn(rows, 4), torch.randint(4, (rows, length)), torch.randn(rows, length)

    rows, length = Dim("rows", min=2, max=8), Dim("length", min=2, max=32)
    sizes = {0: rows, 1: length}
    shapes = (({0: rows}, sizes, sizes),)
    manager = to_edge(torch.export.export(Calls(scattered), inputs(3, 6), dynamic_shapes=shapes))
    manager.to_executorch()
    module, given = manager.exported_program().module(check_guards=False), inputs(5, 23)
    torch.testing.assert_close(module(*given), scattered(*given))


def growing(function, dim, example):
    shapes = (({dim: Dim("n", max=64)},),)
    return to_edge(torch.export.export(Calls(function), (example,), dynamic_shapes=shapes))


def test_a_scan_of_a_dynamic_size_is_refused():
    with pytest.raises(EtxError, match=r"logcumsumexp.*dynamic size"):
        growing(lambda x: x.logcumsumexp(0), 0, torch.ones(8)).to_executorch()
    growing(lambda x: x.logcumsumexp(0), 1, torch.ones(8, 3)).to_executorch()


def test_products_of_a_dynamic_size_have_a_kernel_of_ours():
    growing(lambda x: x.cumprod(0), 0, torch.ones(8)).to_executorch()
    both = ExecutorchBackendConfig(target="executorch")
    with pytest.raises(EtxError, match=r"cumprod.*dynamic size"):
        growing(lambda x: x.cumprod(0), 0, torch.ones(8)).to_executorch(both)
    growing(lambda x: x.cumprod(0), 1, torch.ones(8, 3)).to_executorch(both)
