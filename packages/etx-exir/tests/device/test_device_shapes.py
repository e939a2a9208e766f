# SPDX-License-Identifier: BSD-3-Clause
"""Dynamic shapes on the runtime: bounds, derived and data-dependent sizes, numbers."""

from __future__ import annotations

import math

import etx_runtime
import pytest
import torch
from on_device import Function, agree, lowered
from torch.export import Dim

N = Dim("n", min=2, max=16)


def sizes(*shapes, dynamic):
    """Make one call per row of shapes; `dynamic` has an entry an argument."""
    calls = [tuple(s if isinstance(s, int) else torch.randn(s) for s in row) for row in shapes]
    return calls, {"args": dynamic}


DERIVED = {
    "twice": (
        lambda x, y: x + y[::2],
        sizes(((4,), (8,)), ((16,), (32,)), ((2,), (4,)), dynamic=({0: N}, {0: 2 * N})),
    ),
    "one more": (
        lambda x, y: (x + y[1:], y.shape[0]),
        sizes(((4,), (5,)), ((7,), (8,)), dynamic=({0: N}, {0: N + 1})),
    ),
    "multiple": (
        lambda x: x.view(-1, 4).sum(1),
        sizes(((8,),), ((12,),), dynamic=({0: 4 * Dim("k", min=1, max=4)},)),
    ),
    "nothing at all": (
        lambda x: (x * 2).sum(0),
        sizes(((8, 2),), ((0, 2),), ((1, 2),), dynamic=({0: Dim("z", min=0, max=16)},)),
    ),
    "several": (
        lambda x, y: torch.cat([x, y]).view(-1, 1) @ x[None],
        sizes(((8,), (3,)), ((5,), (4,)), dynamic=({0: N}, {0: Dim("m", min=2, max=8)})),
    ),
    "an integer": (
        lambda x, k: (x[:k] * k, k + x.shape[0], k),
        sizes(((8,), 4), ((12,), 7), ((2,), 2), dynamic=({0: Dim("n", max=16)}, Dim.DYNAMIC)),
    ),
    "an integer that is only returned": (
        lambda x, k: (x * 2, k),
        sizes(((8,), 3), ((8,), 5), dynamic=(None, Dim.DYNAMIC)),
    ),
    "an integer that nothing reads": (
        lambda x, k: x * 2,
        sizes(((8,), 3), ((8,), 5), dynamic=(None, Dim.DYNAMIC)),
    ),
}


@pytest.mark.parametrize("name", DERIVED)
def test_sizes_of_inputs(name):
    function, (calls, shapes) = DERIVED[name]
    agree(function, *calls, dynamic_shapes=shapes)


def numbers(x):
    n = x.shape[0]
    whole = [n // 3, n % 3, -n, n**2, n**7, 2**n, n << 2, n >> 1, n & 3, n | 8, abs(n - 9)]
    whole += [torch.sym_max(n, 4), torch.sym_min(n, 4), torch.sym_sum([n, n, 3])]
    broken = n / 3
    rounded = [math.ceil(broken), math.floor(broken), math.trunc(broken), round(n / 2)]
    rounded += [math.floor(-broken), math.ceil(-broken), round(-n / 2)]
    floats = [broken, n**0.5, n**-1, torch.sym_sqrt(n), torch.sym_float(n) + 0.5]
    flags = [n > 4, n != 5, (n > 4) & (n < 10), (n > 4) | (n < 3), torch.sym_not(n > 4)]
    return whole, rounded, floats, flags, x * (n / 3) + n**0.5


def test_numbers_from_sizes():
    calls = [(torch.randn(n),) for n in (8, 5, 16, 3)]
    agree(numbers, *calls, dynamic_shapes={"args": ({0: N},)})


def from_items(x, y):
    whole, real = x.item(), y.item()
    powers = [whole**2, whole - 7, whole // 2, whole % 3]
    return powers, [real * 2, real**3, torch.sym_sqrt(real * real), -real, real / 2], real * x


def test_numbers_from_tensors():
    calls = [(torch.tensor(i), torch.tensor(f)) for i, f in ((3, 2.5), (-5, 0.25), (0, -1.0))]
    agree(from_items, *calls)


def some(x, i):
    k = i.item()
    torch._check(k >= 0)
    torch._check(k <= x.shape[0])
    return x[:k] * 2, x.narrow(0, 0, k).sum(), torch.zeros(k, 3) + torch.arange(k)[:, None], k


def parts(x, lengths):
    items = lengths.tolist()
    for item in items:
        torch._check(item >= 0)
        torch._check(item <= x.shape[0])
    torch._check(sum(items) == x.shape[0])
    return torch.split(x, items)


DEPENDENT = {
    "nonzero": (torch.nonzero, [(torch.tensor(v),) for v in ([1.0, 0, 2], [0.0] * 3, [1.0] * 3)]),
    "masked": (lambda x: x[x > 0] * 2, [(torch.tensor([1.0, -1]),), (-torch.ones(2),)]),
    "item": (some, [(torch.randn(8), torch.tensor(k)) for k in (3, 8, 0)]),
    "split": (parts, [(torch.randn(7), torch.tensor(k)) for k in ([3, 4], [7, 0], [0, 7])]),
    "repeat": (
        lambda x, r: torch.repeat_interleave(x, r, output_size=6),
        [(torch.randn(3), torch.tensor(r)) for r in ([1, 2, 3], [0, 6, 0])],
    ),
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_sizes_from_data(name):
    function, calls = DEPENDENT[name]
    agree(function, *calls)


REFUSED = {
    "too small": (({0: N},), ((1,),), "at least 2"),
    "too large": (({0: N},), ((17,),), "must be at most 16"),
    "no multiple": (({0: 4 * Dim("k", max=4)},), ((10,),), "multiple of 4"),
    "not equal": (({0: N}, {0: N}), ((4,), (5,)), "must equal dimension 0 of"),
    "not twice": (({0: N}, {0: 2 * N}), ((4,), (10,)), r"must be 2 \* n = 8"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_sizes_that_the_program_does_not_take(name):
    shapes, given, message = REFUSED[name]
    example = {"not equal": ((4,), (4,)), "not twice": ((4,), (8,))}.get(name, ((8,),))
    function = Function(lambda x, y=None: x * 2 if y is None else x.sum() + y)
    inputs = tuple(torch.randn(size) for size in example)
    model = etx_runtime.load(lowered(function, inputs, dynamic_shapes={"args": shapes}).buffer)
    with pytest.raises(etx_runtime.InputError, match=message) as caught:
        model(*(torch.randn(size).numpy() for size in given))
    assert "input" in str(caught.value)
