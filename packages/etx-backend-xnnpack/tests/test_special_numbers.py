# SPDX-License-Identifier: BSD-3-Clause
"""Functions of infinities, NaN, zeros of both signs and the largest numbers are eager's.

Clamps may drop a NaN, denormals are zeros, and `pow` of float16 has roots of -inf and -0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import etx_runtime
import pytest
import torch
import torch.nn.functional as F
from case import function
from etx_backend_xnnpack import read_blob
from etx_backend_xnnpack._generated.xnnpack import Operator
from etx_exir.delegation.explain import outside
from lowered import lower
from torch import Tensor

BESIDE = 0.0, 1e-5, 0.3, 0.5, 1.0, 1.5, 2.5, 3.0, 20.0, 89.0, 1e19, 1e30, 9e37, 2.5e38, math.inf
NUMBERS = [sign * number for number in BESIDE for sign in (1, -1)] + [math.nan]
UNARY = "abs ceil cos exp floor log neg reciprocal rsqrt sigmoid sin sqrt square tanh"
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    **{name: getattr(torch, name) for name in UNARY.split()},
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "elu": F.elu,
    "leaky_relu": F.leaky_relu,
    "cube": lambda x: x**3,
    "root": lambda x: x**0.5,
    "reciprocal_root": lambda x: x**-0.5,
    "root_of_sum": lambda x: (x + 1).rsqrt(),
    "power_of_sum": lambda x: (x + 1) ** -0.5,
    "root_of_squares": lambda x: (x * x + 1e-5).rsqrt(),
    "quotient": lambda x: x / (x - 1),
    "one_by": lambda x: 1 / x,
    "log_of_sum": lambda x: (x + 1).log(),
    "rms": lambda x: x.reshape(-1, 1) * (x.reshape(-1, 1).square().mean(1, True) + 1e-5).rsqrt(),
}
TIMES = {torch.float32: 1e-5, torch.float16: 2e-3}


def is_excluded(name: str, dtype: torch.dtype, x: Tensor) -> Tensor:
    """Tell which numbers `pow` of float16 takes to others than the root."""
    if dtype is torch.float32 or not name.startswith(("root", "reciprocal_", "power")):
        return torch.zeros_like(x, dtype=torch.bool)
    return (x == -math.inf) | ((x == 0) & x.signbit())


@pytest.mark.parametrize("dtype", TIMES)
def test_special_numbers(dtype: torch.dtype) -> None:
    x = torch.tensor(NUMBERS * 10, dtype=torch.float64).to(dtype)
    at, half = TIMES[dtype], dtype is torch.float16
    edge = lower(function("all", lambda x: [f(x) for f in FUNCTIONS.values()], x.shape, half=half))
    assert not list(outside(edge.exported_program()))
    results = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")(x)
    wrong = {}
    for (name, f), result in zip(FUNCTIONS.items(), results, strict=True):
        # torch's vectors of AVX-512 have a GELU that is NaN at infinity.
        exact = f(x.double()).to(dtype) if name == "gelu" else f(x)
        near = torch.isclose(result, exact, rtol=at, atol=at, equal_nan=True).reshape(x.shape)
        wrong[name] = set(x[~near & ~is_excluded(name, dtype, x)].tolist())
    assert not any(wrong.values()), wrong


@pytest.mark.parametrize("at", [(), (0,), (127, 128), (300, 999), (1030,), range(0, 1037, 5)])
def test_few_sigmoids_of_large_numbers_among_many(at: Sequence[int]) -> None:
    x = torch.randn(1037)
    x[list(at)] = torch.tensor([1e30, -1e30, math.nan]).repeat(len(at))[: len(at)]
    edge = lower(function("sigmoids", lambda x: [x.sigmoid(), F.silu(x + 0)], x.shape))
    results = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")(x)
    for result, exact in zip(results, (x.sigmoid(), F.silu(x)), strict=True):
        torch.testing.assert_close(result, exact, equal_nan=True)


def test_zero_has_a_reciprocal_root_in_other_runtimes() -> None:
    names = [name for name in FUNCTIONS if name.startswith(("r", "p"))]
    shape = (len(NUMBERS),)
    edge = lower(function("roots", lambda x: [FUNCTIONS[name](x) for name in names], shape))
    graphs = [read_blob(blob).graph for blob in edge.to_executorch().pte_file.delegates]
    kinds = {node.operator_type for graph in graphs for node in graph.nodes}
    assert Operator.SquareRoot in kinds
    assert Operator.ReciprocalSquareRoot not in kinds
