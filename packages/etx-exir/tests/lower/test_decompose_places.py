# SPDX-License-Identifier: BSD-3-Clause
"""What is put at strides and diagonals, and fractional pools, as eager has them."""

import pytest
import torch
from etx_exir.lower.decompose_places import PLACES

aten = torch.ops.aten
X = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(2))


def check(op, *arguments):
    torch.testing.assert_close(PLACES[op](*arguments), op(*arguments), rtol=0, atol=0)


@pytest.mark.parametrize(
    "place", [(0, 0, 1), (1, 1, 2), (-2, 0, 2), (1, -1, 0), (9, 0, 1)], ids=str
)
def test_diagonals(place):
    source = torch.randn_like(X.diagonal(*place))
    check(aten.diagonal_scatter.default, X, source, *place)


@pytest.mark.parametrize("offset", [None, 0, 3])
def test_strides(offset):
    source = torch.arange(6.0).reshape(2, 3)
    check(aten.as_strided_scatter.default, X, source, [2, 3], [7, 2], offset)


@pytest.mark.parametrize("fill", [-1, 5])
@pytest.mark.parametrize("size", [0, 1, 30, 70])
@pytest.mark.parametrize("shape", [(3, 4, 5), (7,), (), (0,), (2, 0)], ids=str)
def test_where_numbers_are_not_0(shape, size, fill):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3)).clamp(min=0)
    op = aten.nonzero_static.default
    actual = PLACES[op](x, size=size, fill_value=fill)
    assert torch.equal(actual, torch.nonzero_static(x, size=size, fill_value=fill))


def test_memory_of_strides_has_them():
    empty = PLACES[aten.new_empty_strided.default](X, [2, 3], [1, 2], dtype=torch.int64)
    assert (empty.shape, empty.stride(), empty.dtype) == ((2, 3), (1, 2), torch.int64)


@pytest.mark.parametrize("accumulate", [False, True])
def test_put(accumulate):
    places = torch.tensor([[0, 59], [-1, 7]]) if accumulate else torch.tensor([[0, 9], [-1, 7]])
    check(aten.put.default, X, places, torch.arange(4.0).reshape(2, 2), accumulate)


@pytest.mark.parametrize("reduce", ["add", "multiply"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8], ids=str)
def test_scatter_that_adds_or_multiplies(dtype, reduce):
    x = (X * 4).abs().to(dtype)
    index = torch.tensor([[[0, 1, 1], [2, 0, 2]], [[2, 2, 2], [1, 0, 1]]])
    source = torch.arange(12).reshape(2, 2, 3).to(dtype)
    for dim in (0, -2):
        for op, value in ((aten.scatter.reduce, source), (aten.scatter.value_reduce, 3)):
            expected = op(x, dim, index, value, reduce=reduce)
            actual = PLACES[op](x, dim, index, value, reduce=reduce)
            torch.testing.assert_close(actual, expected, rtol=2e-3, atol=0)


@pytest.mark.parametrize("size", [(3, 5), (4, 4), (5, 2), (0, 3), (3, 0), (1, 1)], ids=str)
@pytest.mark.parametrize("op", [aten.tril_indices.default, aten.triu_indices.default], ids=str)
def test_places_of_triangles(op, size):
    for offset in (-6, -2, 0, 1, 3, 9):
        for dtype in (torch.int64, torch.int32):
            actual = PLACES[op](*size, offset, dtype=dtype)
            torch.testing.assert_close(actual, op(*size, offset, dtype=dtype), rtol=0, atol=0)


@pytest.mark.parametrize("out", [[5, 4, 3], [1, 2, 1], [8, 7, 5]], ids=str)
@pytest.mark.parametrize("lead", [(2, 3), (3,), (0, 3)], ids=str)
@pytest.mark.parametrize("dims", [2, 3])
def test_fractional_pools(dims, lead, out):
    op = {2: aten.fractional_max_pool2d, 3: aten.fractional_max_pool3d}[dims].default
    x = torch.randn(*lead, *[11, 9, 8][:dims])
    x.flatten()[::37] = float("nan")
    samples = torch.rand(*(lead if len(lead) == 2 else (1, *lead)), dims)
    arguments = (x, [2, 3, 2][:dims] if out[1] < 7 else [2] * dims, out[:dims], samples)
    actual, expected = PLACES[op](*arguments), op(*arguments)
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
