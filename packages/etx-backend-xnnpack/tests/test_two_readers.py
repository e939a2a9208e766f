# SPDX-License-Identifier: BSD-3-Clause
"""A number that one reader quantizes is not rounded for the others."""

from __future__ import annotations

from collections.abc import Callable

import etx_runtime
import pytest
import torch
import torch.ao.quantization.fx._decomposed
import torch.nn.functional as F
from case import function
from etx_exir.delegation.explain import outside
from lowered import lower
from torch import Tensor

ops = torch.ops.quantized_decomposed
FULL = (-128, 127, torch.int8)
COARSE = 0.4, 3
FINE = 0.01, -7
WEIGHT = torch.linspace(-1, 1, 64).reshape(8, 8)


def rounded(x: Tensor, at: tuple[float, int]) -> Tensor:
    numbers: Tensor = ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *at, *FULL), *at, *FULL)
    return numbers


MOVES: dict[str, Callable[[Tensor], Tensor]] = {
    "permute": lambda x: x.permute(0, 2, 3, 1),
    "reshape": lambda x: x.reshape(1, 16, 16),
    "slice": lambda x: x[:, 1:4],
    "cat": lambda x: torch.cat([x, x], 1),
    "pad": lambda x: F.pad(x, (1, 1, 1, 1)),
    "split": lambda x: x.split(2, 1)[1],
    "unsqueeze": lambda x: x[0].unsqueeze(1),
    "flip_of_sum": lambda x: (x + x.permute(0, 1, 3, 2)).permute(0, 2, 1, 3),
}
COMPUTES: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "clamp": lambda x: x.clamp(-0.5, 0.7),
    "abs": torch.abs,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "silu": F.silu,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "gelu": F.gelu,
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 1),
    "square": torch.square,
    "add": lambda x: x + 0.25,
    "sum": lambda x: x + x,
    "mul": lambda x: x * x,
    "max_pool": lambda x: F.max_pool2d(x, 2),
    "avg_pool": lambda x: F.avg_pool2d(x, 2),
    "mean": lambda x: x.mean((2, 3), keepdim=True),
    "linear": lambda x: F.linear(x, WEIGHT),
    "conv2d": lambda x: F.conv2d(x, WEIGHT[:4, :4, None, None]),
}
READERS = MOVES | COMPUTES


FIRST: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp,
    "linear": lambda x: F.linear(x, WEIGHT),
}


@pytest.mark.parametrize("reads", [None, FINE], ids=["numbers", "integers"])
@pytest.mark.parametrize("first", FIRST)
def test_readers_beside_one_that_quantizes(first: str, reads: tuple[float, int] | None) -> None:
    def all_readers(x: Tensor) -> list[Tensor]:
        y = FIRST[first](x)
        coarse = rounded(y, COARSE).permute(0, 2, 3, 1)
        results = [f(y) for f in READERS.values()]
        return [coarse, *(r if reads is None else rounded(r, reads) for r in results)]

    x = torch.rand(1, 4, 8, 8, generator=torch.Generator().manual_seed(0)) * 2 - 1
    edge = lower(function("readers", all_readers, x.shape))
    assert not list(outside(edge.exported_program()))
    found = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")(x)
    far = [(one - other).abs().max() for one, other in zip(found, all_readers(x), strict=True)]
    most = 1e-5 if reads is None else FINE[0] * 1.01
    assert {name: float(d) for name, d in zip(READERS, far[1:], strict=True) if d > most} == {}
