# SPDX-License-Identifier: BSD-3-Clause
"""Quantized models in bfloat16 and float64 stay outside, their conversions too."""

from __future__ import annotations

from itertools import product
from typing import Any

import etx_runtime
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge_transform_and_lower
from torch import Tensor, nn
from torch.nn import functional as F

ops = torch.ops.quantized_decomposed
DTYPES = torch.bfloat16, torch.float16, torch.float32
FULL = (-128, 127, torch.int8)


class Weights(nn.Module):
    """A linear layer with int8 weights, one scale a row."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.register_buffer("integers", torch.randint(-128, 128, (24, 16)).to(torch.int8))
        self.register_buffer("scales", torch.rand(24) / 100)
        self.register_buffer("zeros", torch.zeros(24, dtype=torch.long))

    def weight(self) -> Tensor:
        given: Any = (self.integers, self.scales, self.zeros, 0, *FULL)
        weight: Tensor = ops.dequantize_per_channel(*given, out_dtype=self.dtype)
        return weight

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.rounded(x), self.weight()).relu()

    def rounded(self, x: Tensor) -> Tensor:
        return x


class Dynamic(Weights):
    """Its activations are quantized at run time."""

    def rounded(self, x: Tensor) -> Tensor:
        scale, zero = ops.choose_qparams(x, -128, 127, 1e-5, torch.int8)
        integers = ops.quantize_per_tensor(x, scale, zero, *FULL)
        numbers: Tensor = ops.dequantize_per_tensor(
            integers, scale, zero, *FULL, out_dtype=self.dtype
        )
        return numbers


class Static(Weights):
    """Its activations have one scale."""

    def rounded(self, x: Tensor) -> Tensor:
        integers = ops.quantize_per_tensor(x, 0.03, 2, *FULL)
        numbers: Tensor = ops.dequantize_per_tensor(integers, 0.03, 2, *FULL, out_dtype=self.dtype)
        return numbers


@pytest.mark.parametrize("heavy_only", [True, False])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [*product((Weights, Dynamic, Static), DTYPES), (Weights, torch.float64)],
)
def test_models_run_as_eager(kind: type[Weights], dtype: torch.dtype, heavy_only: bool) -> None:
    torch.manual_seed(0)
    model, x = kind(dtype).eval(), torch.randn(3, 16, dtype=dtype)
    program = torch.export.export(model, (x,))
    partitioner = XnnpackPartitioner(heavy_only=heavy_only)
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    found = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")(x)
    torch.testing.assert_close(found, model(x), rtol=0.02, atol=0.02)
