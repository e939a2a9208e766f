# SPDX-License-Identifier: BSD-3-Clause
"""What the file says of its inputs: names, ranges, divisors, derived sizes, relations."""

from __future__ import annotations

import pytest
import torch
from etx_exir.ir.constraints import constraints_of
from torch import nn
from torch.export import Dim


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, y=None, z=None):
        given = [item for item in (x, y, z) if item is not None]
        return self.function(*given)


def constraints(function, *sizes, shapes):
    inputs = tuple(s if isinstance(s, int) else torch.randn(s) for s in sizes)
    return constraints_of(
        torch.export.export(
            Function(function), inputs, dynamic_shapes=(*shapes, None, None)[: len(inputs)]
        )
    )


def dims(result):
    rows = [row["dims"] for row in result["inputs"]]
    names = {}
    for row in rows:
        for dim in row:
            if dim is not None and "expr" not in dim:
                names.setdefault(dim["symbol"], f"s{len(names)}")
    return rows, names


def rename(text, names):
    for old, new in names.items():
        text = text.replace(old, new)
    return text


N, AUTO = Dim("n", min=3, max=16), Dim.AUTO(max=16)


def test_ranges_equality_and_multiples():
    result = constraints(lambda x, y: x + y[::2], (4,), (8,), shapes=({0: N}, {0: 2 * N}))
    ((x,), (y,)), names = dims(result)
    assert (x["min"], x["max"], x["divisor"]) == (3, 16, 1)
    assert (y["min"], y["max"], y["divisor"]) == (6, 32, 2)
    assert y["symbol"] == x["symbol"]
    assert rename(y["expr"], names) == "2 * s0"
    assert "guards" not in result
    result = constraints(lambda x, y: x + y, (4,), (4,), shapes=({0: AUTO}, {0: AUTO}))
    ((x,), (y,)), _ = dims(result)
    assert x == y


def test_divisors_of_plain_symbols():
    result = constraints(lambda x: x.view(-1, 4).sum(1), (8,), shapes=({0: AUTO},))
    (((x,),), _) = dims(result)
    assert (x["divisor"], x["min"], x["max"]) == (4, 8, 16)
    assert "expr" not in x
    assert "guards" not in result

    def checked(x):
        torch._check(x.shape[0] % 2 == 0)
        torch._check(x.shape[0] % 3 == 0)
        return x * 2

    (((x,),), _) = dims(constraints(checked, (12,), shapes=({0: AUTO},)))
    assert x["divisor"] == 6


def test_an_offset_is_part_of_the_expression():
    k = Dim("k", max=16)
    ((x,),), _ = dims(constraints(lambda x: x[1:].view(-1, 3), (7,), shapes=({0: 3 * k + 1},)))
    assert x["expr"].replace(x["symbol"], "k") == "1 + 3 * k"
    assert (x["divisor"], x["max"]) == (1, 49)


@pytest.mark.parametrize(
    ("function", "sizes", "expr"),
    [
        (lambda x, y, z: torch.cat([x, y]) + z, [(3,), (5,), (8,)], "s0 + s1"),
        (lambda x, y, z: torch.outer(x, y).flatten() + z, [(3,), (5,), (15,)], "s0 * s1"),
    ],
)
def test_sizes_of_several_symbols(function, sizes, expr):
    ranges = {0: AUTO}, {0: AUTO}, {0: Dim.AUTO(max=256)}
    ((_, _, (z,)), names) = dims(constraints(function, *sizes, shapes=ranges))
    assert set(rename(z["expr"], names)) == set(expr)
    assert z["symbol"] in names


@pytest.mark.parametrize(
    ("condition", "guard"),
    [
        (lambda x, y: x.shape[0] > y.shape[0], "s0 > s1"),
        (lambda x, y: x.shape[0] != 5, "s0 != 5"),
        (lambda x, y: x.shape[0] % 3 == 1, "s0 % 3 == 1"),
        (lambda x, y: x.shape[0] * 2 <= y.shape[0] * y.shape[0], "2 * s0 <= s1 * s1"),
    ],
)
def test_branches_on_sizes_are_relations(condition, guard):
    def function(x, y):
        return x.sum() + y if condition(x, y) else x.sum() * y

    result = constraints(function, (7,), (4,), shapes=({0: AUTO}, {0: AUTO}))
    _, names = dims(result)
    assert [rename(text, names) for text in result["guards"]] == [guard]


def test_what_a_range_says_is_not_repeated():
    result = constraints(lambda x: x * 2 if x.shape[0] > 5 else x, (8,), shapes=({0: AUTO},))
    (((x,),), _) = dims(result)
    assert (x["min"], x["max"]) == (6, 16)
    assert "guards" not in result


def test_numbers_have_a_range_too():
    def first(x, k):
        torch._check(k <= x.shape[0])
        return x[:k]

    result = constraints(first, (8,), 3, shapes=({0: AUTO}, Dim.DYNAMIC))
    value = result["inputs"][1]["value"]
    assert (value["min"], value["max"], value["divisor"]) == (2, 16, 1)
    _, names = dims(result)
    assert [rename(g, {**names, value["symbol"]: "k"}) for g in result["guards"]] == ["k <= s0"]
    free = constraints(lambda x, k: x + k, (8,), 3, shapes=(None, Dim.DYNAMIC))
    assert (free["inputs"][1]["value"]["min"], free["inputs"][1]["value"]["max"]) == (0, None)
    assert "value" not in constraints(lambda x, k: x + k, (8,), 3, shapes=(None, None))["inputs"][1]
