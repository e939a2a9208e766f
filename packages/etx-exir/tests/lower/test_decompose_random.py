# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers of every form are distributed as eager's."""

import math
from collections.abc import Callable

import pytest
import torch
from etx_exir.lower.decompose_random import RANDOM
from torch import Tensor

aten = torch.ops.aten
COUNT = 20_000
LARGEST = 1.95
"""Of the statistic of Kolmogorov and Smirnov, times the root of the count: 1 in 1000 exceeds it."""
X = torch.zeros(COUNT)
WEIGHTS = torch.tensor([0.1, 0.0, 0.4, 0.2, 0.3])

CONTINUOUS: dict[str, tuple[Callable[[], Tensor], Callable[[Tensor], Tensor]]] = {
    "rand_like": (lambda: RANDOM[aten.rand_like.default](X), lambda x: x),
    "randn_like": (lambda: RANDOM[aten.randn_like.default](X), torch.special.ndtr),
    "uniform": (lambda: RANDOM[aten.uniform.default](X, -1, 3), lambda x: (x + 1) / 4),
    "normal": (
        lambda: RANDOM[aten.normal_functional.default](X, 2, 3),
        lambda x: torch.special.ndtr((x - 2) / 3),
    ),
    "normal of means": (
        lambda: RANDOM[aten.normal.Tensor_float](X + 2, 3),
        lambda x: torch.special.ndtr((x - 2) / 3),
    ),
    "normal of deviations": (
        lambda: RANDOM[aten.normal.float_Tensor](2, X + 3),
        lambda x: torch.special.ndtr((x - 2) / 3),
    ),
    "normal of both": (
        lambda: RANDOM[aten.normal.Tensor_Tensor](X[:1] + 2, X + 3),
        lambda x: torch.special.ndtr((x - 2) / 3),
    ),
    "normal of a size": (
        lambda: RANDOM[aten.normal.float_float](2, 3, [COUNT]),
        lambda x: torch.special.ndtr((x - 2) / 3),
    ),
    "exponential": (lambda: RANDOM[aten.exponential.default](X, 2), lambda x: -torch.expm1(-2 * x)),
    "log_normal": (
        lambda: RANDOM[aten.log_normal.default](X, 1, 2),
        lambda x: torch.special.ndtr((x.log() - 1) / 2),
    ),
    "cauchy": (
        lambda: RANDOM[aten.cauchy.default](X, 1, 2),
        lambda x: torch.atan((x - 1) / 2) / math.pi + 0.5,
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("seed", [0, 1])
def test_distributions(name, seed):
    torch.manual_seed(seed)
    drawn, cumulated = CONTINUOUS[name]
    found = drawn()
    assert (found.shape, found.dtype) == (X.shape, X.dtype)
    expected, rank = cumulated(found.double().sort().values), torch.arange(COUNT + 1) / COUNT
    off = max((rank[1:] - expected).max(), (expected - rank[:-1]).max())
    assert float(off) * math.sqrt(COUNT) < LARGEST


def assert_shares(counts, shares):
    """Compare counts with shares, each within four deviations."""
    total = int(counts.sum())
    for count, share in zip(counts.tolist(), shares.tolist(), strict=True):
        deviation = math.sqrt(total * share * (1 - share))
        assert abs(count - total * share) <= 4 * deviation, (counts, shares)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_bernoulli(dtype):
    torch.manual_seed(0)
    for p in (0.0, 0.3, 1.0):
        found = RANDOM[aten.bernoulli.p](X.to(dtype), p)
        assert found.dtype == dtype
        assert_shares(torch.stack([found == 0, found == 1]).sum(1), torch.tensor([1 - p, p]))
        found = RANDOM[aten.bernoulli.Tensor](X.to(dtype), torch.full((COUNT,), p))
        assert_shares(torch.stack([found == 0, found == 1]).sum(1), torch.tensor([1 - p, p]))
        if dtype.is_floating_point:
            found = RANDOM[aten.bernoulli.default](torch.full((COUNT,), p, dtype=dtype))
            share = float(torch.tensor(p, dtype=dtype))
            expected = torch.tensor([1 - share, share])
            assert_shares(torch.stack([found == 0, found == 1]).sum(1), expected)


def test_geometric():
    torch.manual_seed(0)
    found = RANDOM[aten.geometric.default](X, 0.3)
    counts = torch.stack([(found == k).sum() for k in range(1, 8)] + [(found > 7).sum()])
    shares = torch.tensor([0.3 * 0.7 ** (k - 1) for k in range(1, 8)] + [0.7**7])
    assert_shares(counts, shares)
    assert (RANDOM[aten.geometric.default](X, 1.0) == 1).all()


def test_multinomial_with_replacement():
    torch.manual_seed(0)
    both = torch.stack([WEIGHTS * 7, torch.ones(5)])
    found = RANDOM[aten.multinomial.default](both, COUNT, True)
    assert (found.shape, found.dtype) == ((2, COUNT), torch.int64)
    for row, weights in zip(found, both, strict=True):
        assert_shares(row.bincount(minlength=5), weights / weights.sum())


def test_multinomial_without_replacement():
    torch.manual_seed(0)
    many = RANDOM[aten.multinomial.default](WEIGHTS.expand(COUNT, 5), 4)
    assert many.shape == (COUNT, 4)
    assert (many.sort().values == torch.tensor([0, 2, 3, 4])).all()
    assert_shares(many[:, 0].bincount(minlength=5), WEIGHTS)
    second = many[many[:, 0] == 2, 1].bincount(minlength=5)
    rest = WEIGHTS.clone()
    rest[2] = 0
    assert_shares(second, rest / rest.sum())
    assert RANDOM[aten.multinomial.default](WEIGHTS, 2).shape == (2,)


def test_rrelu():
    x = torch.linspace(-4, 4, 1001)
    found, noise = RANDOM[aten.rrelu_with_noise_functional.default](x, x, 0.1, 0.3, True)
    torch.testing.assert_close(found, x * noise)
    assert (noise[x > 0] == 1).all()
    assert 0.1 <= noise[x < 0].min() < 0.12 < 0.28 < noise[x < 0].max() < 0.3
    found = RANDOM[aten.rrelu_with_noise_functional.default](x, x, 0.1, 0.3)[0]
    torch.testing.assert_close(found, torch.nn.functional.rrelu(x, 0.1, 0.3))


def test_permutations():
    for dtype in (None, torch.int32, torch.float32):
        found = RANDOM[aten.randperm.default](100, dtype=dtype)
        assert found.dtype == (dtype or torch.int64)
        assert found.sort().values.tolist() == list(range(100))
        assert found.tolist() != list(range(100))
    assert RANDOM[aten.randperm.default](0).shape == (0,)


def test_integers():
    x = torch.empty(40, 50, dtype=torch.int32)
    for op, given, low in (
        (aten.randint.default, (5, [40, 50]), 0),
        (aten.randint.low, (-3, 5, [40, 50]), -3),
        (aten.randint_like.default, (x, 5), 0),
        (aten.randint_like.low_dtype, (x, -3, 5), -3),
    ):
        found = RANDOM[op](*given)
        assert (found.shape, found.dtype) == (x.shape, op(*given).dtype)
        assert_shares((found - low).flatten().bincount(), torch.full((5 - low,), 1 / (5 - low)))
