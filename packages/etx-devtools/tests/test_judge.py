# SPDX-License-Identifier: BSD-3-Clause
"""The verifier that boards have, over dtypes, shapes and dim orders, next to NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from etx_devtools.bundled_program.tensors import Bits, to_array, to_table
from etx_devtools.bundled_program.verify import _compare
from etx_runtime.bits import of_type
from etx_runtime.foreign import numbers
from etx_schema.dtypes import DTYPES
from hypothesis import given, settings
from hypothesis import strategies as st

FOREIGN = {"bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz"}
FOREIGN.add("complex32")
NAMES = [name for name, _ in DTYPES.values() if "bits" not in name and not name.startswith("q")]


def distance(x, y):
    """Return the difference of two Python numbers; that of integers is exact."""
    if x == y or (x != x and y != y):
        return 0
    apart = abs(x - y)
    return math.inf if apart != apart else apart


def judge(got, expected, atol, rtol):
    """Return the verdict of lists of Python numbers: passed, different, worst, max abs, max rel."""
    different, worst, largest, relative = 0, -1, 0.0, 0.0
    for place, (x, y) in enumerate(zip(got, expected, strict=True)):
        apart, size = distance(x, y), abs(y)
        bounded = isinstance(y, int) or math.isfinite(size)
        allowed = atol if isinstance(y, int) else atol + rtol * size
        if isinstance(y, bool) or not bounded:
            allowed = 0
        different += not apart <= allowed
        if apart:
            relative = max(relative, float(apart) / float(size) if bounded and size else math.inf)
        if worst < 0 or float(apart) > largest:
            worst, largest = place, float(apart)
    return not different, different, worst, largest, relative


@st.composite
def pairs(draw):
    """Draw two tensors of one dtype and shape, each in a dim order of its own."""
    name = draw(st.sampled_from(NAMES))
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    width = next(width for known, width in DTYPES.values() if known == name)
    count = math.prod(shape)
    unit = np.dtype(f"u{width}") if name in FOREIGN else np.dtype(name)
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    few = draw(st.booleans())
    sides = []
    for _ in range(2):
        raw = random.integers(0, 256, count * unit.itemsize, np.uint8).view(unit)
        if few and name not in FOREIGN:
            raw = random.integers(0, 3, count).astype(unit)
        if unit.kind == "b":
            raw = random.integers(0, 2, count).astype(bool)
        sides.append(raw.reshape(shape))
    kept = random.random(shape) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    sides[0] = np.where(kept, sides[1], sides[0]).astype(unit)
    orders = [draw(st.permutations(range(len(shape)))) for _ in sides]
    return name, sides, orders


def stored(array, name, order):
    """Return an array as a bundle of that dim order has it."""
    return to_array(to_table(Bits(array, name), order))


@settings(max_examples=400, deadline=None)
@given(pairs(), st.sampled_from([0.0, 1e-5, 1.0, 1e3]), st.sampled_from([0.0, 1e-5, 0.5]))
def test_judges_as_numpy(pair, atol, rtol):
    name, sides, orders = pair
    known = [numbers(side, name) if name in FOREIGN else side for side in sides]
    lists = [side.reshape(-1).tolist() for side in known]
    got, expected = (stored(*each) for each in zip(sides, (name, name), orders, strict=True))
    value = of_type(got.bits, name) if isinstance(got, Bits) else got
    row = _compare(value, name, expected, atol, rtol)
    passed, different, worst, largest, relative = judge(*lists, atol, rtol)
    if worst < 0:
        assert row == {"matches": True, "different": 0}
        return
    is_near = "complex" in name
    assert row["largest_difference"] == pytest.approx(largest, rel=1e-13 * is_near, abs=0)
    assert row["largest_relative"] == pytest.approx(relative, rel=1e-13 * is_near, abs=0)
    if not is_near:
        assert (row["matches"], row["different"]) == (passed, different)
        assert np.ravel_multi_index(row["at"], sides[0].shape) == worst
        np.testing.assert_equal(row["got"], float(lists[0][worst]))
        np.testing.assert_equal(row["expected"], float(lists[1][worst]))


@pytest.mark.parametrize("name", ["int64", "uint64", "int32", "uint8"])
def test_integers_are_compared_as_such(name):
    """No double is 2**53 + 1; a relative tolerance does not let integers differ."""
    top = int(np.iinfo(name).max)
    x, y = np.array([top, 5], name), np.array([top - 1, 5], name)
    row = _compare(x, name, y, 1e-5, 1e-2)
    assert (row["matches"], row["at"], row["largest_difference"]) == (False, [0], 1.0)
    assert _compare(x, name, y, 1.0, 0.0)["matches"]
    low = np.array([np.iinfo(name).min, 5], name)
    assert _compare(x, name, low, 0.0, 0.0)["largest_difference"] == float(top - int(low[0]))


def test_values_without_numbers_equal_their_bytes():
    x = np.arange(6, dtype=np.uint8).reshape(2, 3)
    y = x.copy()
    y[1, 2] = 0
    assert _compare(x, "bits8", x.T.copy().T, 0.0, 0.0) == {"matches": True, "different": 0}
    row = _compare(x, "bits8", y, 1e3, 1e3)
    assert (row["matches"], row["different"], row["at"]) == (False, 1, [1, 2])
    assert "first at [1, 2] (bits8 is compared exactly)" in row["reason"]


def test_expected_of_another_type_is_compared_by_number():
    x = np.array([1.5, np.inf], np.float32)
    assert _compare(x, "float32", x.astype(np.float64), 0.0, 0.0)["matches"]
    assert _compare(np.array([3, 4]), "int64", np.array([3.0, 4.0]), 0.0, 0.0)["matches"]
