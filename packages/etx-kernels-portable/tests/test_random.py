# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers are those of Philox4x32-10, by seed, draw and index, and distributed as named."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from arguments import Out
from harness import PLUGIN, RANDOM

MASK = 2**32 - 1
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
NORMAL_42 = [
    "-0x1.371e09f80c7dep-1",
    "0x1.e46d16bfae948p-1",
    "-0x1.b510d5acb221cp-1",
    "0x1.020a3f1760d4bp-2",
]
LARGEST = 1.95
"""Of the statistic of Kolmogorov and Smirnov, times the root of the count: 1 in 1000 exceeds it."""


def draw(
    name: str, size: list[int], dtype: torch.dtype, seed: int = 0, number: int = 0, threads: int = 1
) -> torch.Tensor:
    RANDOM.seed, RANDOM.draws = seed, number
    found = PLUGIN.call(f"aten::{name}.out", size, Out(size, dtype), threads=threads)[0]
    assert RANDOM.draws == number + 1
    return found


def words(seed: int, number: int, block: int) -> list[int]:
    """Return one block of the generator, written after the paper."""
    counter = [block & MASK, block >> 32, number & MASK, number >> 32]
    key = [seed & MASK, seed >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (second >> 32) ^ counter[1] ^ key[0],
            second & MASK,
            (first >> 32) ^ counter[3] ^ key[1],
            first & MASK,
        ]
        key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
    return counter


def doubles(seed: int, number: int, count: int) -> list[float]:
    listed = [word for block in range(count // 2) for word in words(seed, number, block)]
    pairs = zip(listed[::2], listed[1::2], strict=True)
    return [((high << 32 | low) >> 11) / 2**53 for low, high in pairs]


def test_the_generator_is_the_papers() -> None:
    """The known answers of the authors' library, Random123."""
    assert words(0, 0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    most = 2**64 - 1
    assert words(most, most, most) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    pi = 0x85A308D3_243F6A88, 0x03707344_13198A2E, 0x299F31D0_A4093822
    assert words(pi[2], pi[1], pi[0]) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


@pytest.mark.parametrize(("seed", "number"), [(0, 0), (2**64 - 1, 2**40 + 3), (7, 1)])
def test_rand_is_the_generator(seed: int, number: int) -> None:
    listed = [word for block in range(4) for word in words(seed, number, block)]
    for dtype, digits in zip(DTYPES, (24, None, 11, 8), strict=True):
        found = draw("rand", [4, 4], dtype, seed, number).flatten().tolist()
        if digits is None:
            assert found == doubles(seed, number, 16)
        else:
            assert found == [(word >> (32 - digits)) / 2**digits for word in listed]


def test_randn_is_box_and_mullers() -> None:
    found = draw("randn", [1000], torch.float64, 5, 2).tolist()
    uniform = doubles(5, 2, 1000)
    for k in range(0, 1000, 2):
        radius, angle = math.sqrt(-2 * math.log1p(-uniform[k])), 2 * math.pi * uniform[k + 1]
        expected = [radius * math.cos(angle), radius * math.sin(angle)]
        assert found[k : k + 2] == pytest.approx(expected, rel=4e-15, abs=2e-15)


def test_randn_is_the_same_to_the_last_bit_on_every_machine() -> None:
    found = draw("randn", [4], torch.float64, 42).tolist()
    assert [x.hex() for x in found] == NORMAL_42


@pytest.mark.parametrize("name", ["rand", "randn"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_change_nothing(name: str, dtype: torch.dtype) -> None:
    one, *others = (draw(name, [33, 1001], dtype, 3, 1, threads) for threads in (1, 2, 3, 4))
    assert all(torch.equal(one, other) for other in others)


def test_numbers_are_counted_as_elements_lie_in_memory() -> None:
    RANDOM.seed, RANDOM.draws = 1, 0
    size = [2, 3, 4, 5]
    out = Out(size, torch.float32, dim_order=[0, 2, 3, 1])
    last = PLUGIN.call("aten::rand.out", size, out)[0]
    first = draw("rand", [2, 4, 5, 3], torch.float32, 1)
    assert torch.equal(last.permute(0, 2, 3, 1), first)


def distance(x: torch.Tensor, cumulated: Callable[[torch.Tensor], torch.Tensor]) -> float:
    """Return the statistic of Kolmogorov and Smirnov, times the root of the count."""
    ordered = x.flatten().double().sort().values
    count = len(ordered)
    expected, rank = cumulated(ordered), torch.arange(count + 1) / count
    off = max((rank[1:] - expected).max(), (expected - rank[:-1]).max())
    return float(off) * math.sqrt(count)


@pytest.mark.parametrize("seed", [0, 1, 12345])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_are_distributed_as_named(seed: int, dtype: torch.dtype) -> None:
    count = 100_000
    x = draw("rand", [count], dtype, seed)
    assert 0 <= x.min() < 1e-3
    assert 1 - 1e-3 < x.max() < 1
    assert abs(float(x.double().mean()) - 0.5) < 4 * math.sqrt(1 / 12 / count)
    assert distance(x, lambda values: values) < LARGEST
    y = draw("randn", [count], dtype, seed)
    assert abs(float(y.double().mean())) < 4 / math.sqrt(count)
    assert abs(float(y.double().var()) - 1) < 4 * math.sqrt(2 / count)
    assert distance(y, torch.special.ndtr) < LARGEST


@pytest.mark.parametrize("name", ["rand", "randn"])
def test_draws_and_neighbours_know_nothing_of_one_another(name: str) -> None:
    count = 100_000
    one = draw(name, [count], torch.float64, 1)
    other_draw = draw(name, [count], torch.float64, 1, 1)
    other_seed = draw(name, [count], torch.float64, 2)
    pairs = [(one, other_draw), (one, other_seed)] + [(one[lag:], one[:-lag]) for lag in (1, 2, 4)]
    for x, y in pairs:
        assert abs(float(torch.corrcoef(torch.stack([x, y]))[0, 1])) < 4 / math.sqrt(count)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_what_rand_says(dtype: torch.dtype, p: float) -> None:
    x = torch.full((33, 1001), 3.0, dtype=dtype)
    found = []
    for threads in (1, 2, 4):
        RANDOM.seed, RANDOM.draws = 9, 4
        outs = Out(x.shape, dtype), Out(x.shape, torch.bool)
        found.append(PLUGIN.call("aten::native_dropout.out", x, p, True, *outs, threads=threads))
    kept = draw("rand", [33, 1001], torch.float32, 9, 4) >= p
    for y, mask in found:
        assert torch.equal(mask, kept)
        assert torch.equal(y == 0, ~kept)
        torch.testing.assert_close(y[kept], torch.full_like(y[kept], 3 / (1 - p)))
