# SPDX-License-Identifier: BSD-3-Clause
"""What differs, how often, and where, is eager's."""

import pytest
import torch
from etx_exir.lower.decompose_unique import UNIQUE

aten = torch.ops.aten
NAN = float("nan")
DTYPES = (torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool)
WHOLE = (aten._unique2.default, aten.unique_consecutive.default)
ROWS = (aten.unique_dim.default, aten.unique_dim_consecutive.default)


def same(op, *given):
    """Compare the numbers and what is asked for; else eager returns anything."""
    found, expected = UNIQUE[op](*given), op(*given)
    for a, b, asked in zip(found, expected, (True, *given[-2:]), strict=True):
        if asked is True:
            torch.testing.assert_close(a, b, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", WHOLE, ids=str)
def test_of_all(op, dtype):
    generator = torch.Generator().manual_seed(0)
    for size in ((), (1,), (7,), (3, 4), (2, 3, 4)):
        x = torch.randint(0, 3, size, generator=generator).to(dtype)
        first = (True,) if op is aten._unique2.default else ()
        for inverse in (False, True):
            for counts in (False, True):
                same(op, x, *first, inverse, counts)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", ROWS, ids=str)
def test_of_rows(op, dtype):
    generator = torch.Generator().manual_seed(0)
    for size in ((1, 1), (7, 2), (3, 4), (5, 2, 2)):
        x = torch.randint(0, 2, size, generator=generator).to(dtype)
        first = (True,) if op is aten.unique_dim.default else ()
        for dim in (0, 1, -1):
            for flags in ((False, False), (True, False), (False, True), (True, True)):
                same(op, x, dim, *first, *flags)


def test_nan_is_like_nothing():
    x = torch.tensor([NAN, 1, NAN, NAN, 1, 0])
    same(aten._unique2.default, x, True, True, True)
    same(aten.unique_consecutive.default, x, True, True)


@pytest.mark.parametrize("op", [*WHOLE, aten.unique_dim_consecutive.default], ids=str)
def test_of_nothing(op):
    places = {aten._unique2.default: (True,), aten.unique_dim_consecutive.default: (0,)}
    same(op, torch.empty(0), *places.get(op, ()), True, True)
