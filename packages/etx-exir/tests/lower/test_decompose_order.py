# SPDX-License-Identifier: BSD-3-Clause
"""Medians, modes and bins are eager's, of torch's own samples too."""

import math

import pytest
import torch
from compared import Compared, run_samples, seeded_samples
from etx_exir.lower.decompose_order import ORDER
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
NAN = math.nan
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8)
SAMPLED = ("median", "nanmedian", "kthvalue", "mode", "searchsorted", "bucketize", "histc")
MODE = aten.mode.default
COUNTS = {aten.histogram.bin_ct, aten.histogram.bins_tensor}
WITHOUT_SAMPLES = {aten.bucketize.Scalar, *COUNTS}
ROWS = torch.tensor([[NAN, 1, NAN, 2, 0], [NAN] * 5, [4, 3, 2, 1, 7], [1, -math.inf, 8, NAN, 3]])


class Decomposed(TorchDispatchMode):
    """Compute by decompositions, and remember of which operators."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.add(function)
        return ORDER.get(function, function)(*args, **kwargs or {})


def same(actual, expected, where=None):
    """Compare values; where several are equal, an index may be any of theirs."""
    if isinstance(expected, torch.Tensor):
        return torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
    values, indices = actual
    same(values, expected[0])
    assert indices.dtype == torch.int64
    assert indices.shape == expected[1].shape
    x, dim, keepdim = where
    if not x.dim():
        return same(indices, expected[1])
    if not keepdim:
        values, indices = values.unsqueeze(dim), indices.unsqueeze(dim)
    return same(x.gather(dim, indices), values)


def samples(dtype):
    for info in op_db:
        if info.name in SAMPLED and info.supports_dtype(dtype, "cpu"):
            for sample in seeded_samples(info, dtype):
                yield info, sample


@pytest.mark.filterwarnings("ignore:.*non-contiguous")
def test_each_has_a_test():
    seen = set(WITHOUT_SAMPLES)
    for info, sample in samples(torch.float32):
        with Decomposed() as mode:
            info(sample.input, *sample.args, **sample.kwargs)
        seen |= mode.seen & set(ORDER)
    assert seen == set(ORDER)


@pytest.mark.filterwarnings("ignore:.*non-contiguous")
@pytest.mark.parametrize("dtype", [*DTYPES, torch.bool], ids=str)
def test_samples_of_torch(dtype):
    for info, sample in samples(dtype):
        args, kwargs = sample.args, sample.kwargs
        expected = info(sample.input, *args, **kwargs)
        with Decomposed():
            actual = info(sample.input, *args, **kwargs)
        at = 1 if info.name == "kthvalue" else 0
        dim = kwargs.get("dim", args[at] if len(args) > at else -1)
        keepdim = kwargs.get("keepdim", args[at + 1] if len(args) > at + 1 else False)
        same(actual, expected, (sample.input, dim, keepdim))


def test_counts_between_edges():
    with Compared({op: ORDER[op] for op in COUNTS}) as compared:
        for dtype in (torch.float32, torch.float64):
            run_samples("histogram", dtype, stride=5)
        x = torch.tensor([0.0, 1.0, 1.0, 2.0, 5.0, NAN, math.inf, -1.0])
        torch.histogram(x, torch.tensor([0.0, 1.0, 2.0, 2.5]))
        torch.histogram(x, 4, range=(0.0, 2.0), density=True)
        torch.histogram(x[:0], 3)
        torch.histogram(x[1:3], 3)
    assert compared.calls.keys() == COUNTS


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", DTYPES[:4], ids=str)
def test_nan(dtype, dim, keepdim):
    x = ROWS.to(dtype)
    none = x[1:2].expand(5, 5)
    found = ORDER[MODE](none, dim, keepdim), MODE(none, dim, keepdim)
    for actual, expected in zip(*found, strict=True):
        same(actual, expected)
    for op in (aten.median.dim, aten.nanmedian.dim):
        given = (x, dim, keepdim)
        if op is aten.nanmedian.dim:
            same(ORDER[op](*given)[0], op(*given)[0])
        else:
            for actual, expected in zip(ORDER[op](*given), op(*given), strict=True):
                same(actual, expected)
    for k in range(1, x.shape[dim] + 1):
        given = (x, k, dim, keepdim)
        same(ORDER[aten.kthvalue.default](*given)[0], aten.kthvalue.default(*given)[0])
    for op in (aten.median.default, aten.nanmedian.default):
        same(ORDER[op](x), op(x))


def test_indices_of_different_numbers():
    x = torch.arange(60.0)[torch.randperm(60)].view(4, 15)
    for op, rest in (
        (aten.median.dim, (1,)),
        (aten.nanmedian.dim, (1,)),
        (aten.kthvalue.default, (7,)),
        (MODE, ()),
    ):
        for actual, expected in zip(ORDER[op](x, *rest), op(x, *rest), strict=True):
            same(actual, expected)


def test_the_last_of_the_most_frequent():
    for dtype in (torch.int64, torch.float32, torch.bool):
        x = torch.randint(0, 4, (50, 16)).to(dtype)
        for dim, keepdim in ((1, False), (-1, True)):
            actual, expected = (f(x, dim, keepdim) for f in (ORDER[MODE], MODE))
            for a, b in zip(actual, expected, strict=True):
                same(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64], ids=str)
@pytest.mark.parametrize("op", [aten.median.default, aten.nanmedian.default], ids=str)
def test_median_of_few(op, dtype):
    for x in (torch.empty(0, 3), torch.tensor(2.0), torch.tensor([3.0]), torch.tensor([5.0, 4.0])):
        same(ORDER[op](x.to(dtype)), op(x.to(dtype)))
    for dim in (aten.median.dim, aten.nanmedian.dim):
        same(ORDER[dim](torch.empty(0, 3), 1)[1], torch.empty(0, dtype=torch.int64))


@pytest.mark.parametrize("right", [False, True])
def test_places_of_odd_numbers(right):
    edges = torch.tensor([-math.inf, 0.0, 0.0, 1.0, math.inf])
    values = torch.tensor([[NAN, math.inf, -math.inf, 0.0], [-0.0, 1.0, 2.0, -5.0]])
    for given in ((edges, values), (edges, values[0, 3]), (edges[:0], values), (edges, values[:0])):
        op = aten.searchsorted.Tensor
        same(ORDER[op](*given, right=right), op(*given, right=right))
    for value in (NAN, math.inf, 0, 0.5):
        op = aten.searchsorted.Scalar
        same(ORDER[op](edges, value, right=right), op(edges, value, right=right))
        op = aten.bucketize.Scalar
        same(ORDER[op](value, edges, right=right), op(value, edges, right=right))
    whole = torch.tensor([1, 2, 3])
    for value in (2, 2.5, -1):
        op = aten.searchsorted.Scalar
        same(ORDER[op](whole, value, right=right), op(whole, value, right=right))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", [*DTYPES[:4], torch.int64, torch.uint8], ids=str)
def test_places_among_many(dtype, right):
    """Some eight numbers are compared with all; of more the place is halved."""
    for length in (1, 2, 7, 8, 9, 10, 15, 16, 17, 100, 129):
        rows = torch.randint(0, 40, (3, 2, length)).to(dtype).sort().values
        values = torch.randint(0, 44, (3, 2, 11)).to(dtype)
        if dtype.is_floating_point:
            values[0, 0, :3] = torch.tensor([NAN, math.inf, -math.inf])
        op = aten.searchsorted.Tensor
        same(ORDER[op](rows, values, right=right), op(rows, values, right=right))
        edges = rows[0, 0].contiguous()
        for some in (values, values[1, 1, 1]):
            same(ORDER[op](edges, some, right=right), op(edges, some, right=right))
            places = aten.bucketize.Tensor
            how = {"right": right, "out_int32": True}
            same(ORDER[places](some, edges, **how), places(some, edges, **how))


@pytest.mark.parametrize("dtype", DTYPES[:4], ids=str)
def test_bins(dtype):
    x = torch.tensor([NAN, math.inf, -math.inf, 0.0, 0.25, 0.5, 1.0, 1.0, -1.0, 7.0]).to(dtype)
    for bins, low, high in ((4, 0, 1), (3, -1, 0.5), (1, 0.0, 7.0)):
        same(ORDER[aten.histc.default](x, bins, low, high), torch.histc(x, bins, low, high))
    for data in (x[3:], x[6:8], x[:0], torch.randn(3000).to(dtype)):
        if data.numel() < 2000 or dtype.itemsize > 2:
            same(ORDER[aten.histc.default](data, 7), torch.histc(data, 7))
