# SPDX-License-Identifier: BSD-3-Clause
"""Small quantized programs, written as pt2e converts them, and how far integers are from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import etx_runtime
import torch
import torch.ao.quantization.fx._decomposed  # registers the operators
from etx_exir import EdgeProgramManager
from etx_exir.lower.lower import run_passes
from etx_exir.passes.integer import INTEGER
from programs import counts, edge
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.nn import functional as F

ops = torch.ops.quantized_decomposed
STEP = 0.05
ZERO = 7
FULL = (-128, 127)


def rounded(x: Tensor, scale: float = STEP, zero_point: int = ZERO) -> Tensor:
    """Return `x` as int8 can say it."""
    q = ops.quantize_per_tensor.default(x, scale, zero_point, *FULL, torch.int8)
    return ops.dequantize_per_tensor.default(q, scale, zero_point, *FULL, torch.int8)


def dynamic(x: Tensor) -> Tensor:
    """Return `x` rounded to int8 with the range that it has."""
    scale, zero = ops.choose_qparams.tensor(x, *FULL, 2**-12, torch.int8)
    q = ops.quantize_per_tensor.tensor(x, scale, zero, *FULL, torch.int8)
    return ops.dequantize_per_tensor.tensor(q, scale, zero, *FULL, torch.int8)


def by_token(x: Tensor) -> Tensor:
    """Return the rows of `x` rounded to int8, each with the range that it has."""
    scale, zero = ops.choose_qparams_per_token_asymmetric(x, torch.int8)
    q = ops.quantize_per_token(x, scale, zero, *FULL, torch.int8)
    return ops.dequantize_per_token(q, scale, zero, *FULL, torch.int8, torch.float32)


class Weight(nn.Module):
    """A random int8 weight, with a scale for each index of `axis` or one for all."""

    def __init__(self, *shape: int, axis: int | None = 0, bits: int = 8) -> None:
        super().__init__()
        self.axis, self.low, self.high = axis, -(2 ** (bits - 1)) + (bits == 8), 2 ** (bits - 1) - 1
        self.scale = 0.01
        seeded = torch.Generator().manual_seed(sum(shape))
        bounds = (self.low, self.high + 1)
        integers = torch.randint(*bounds, shape, dtype=torch.int8, generator=seeded)
        self.register_buffer("integers", integers)
        count = 1 if axis is None else shape[axis]
        self.register_buffer("scales", torch.rand(count, generator=seeded) * 0.02 + 0.001)
        self.register_buffer("zeros", torch.zeros(count, dtype=torch.int64))

    def forward(self) -> Tensor:
        bounds = (self.low, self.high, torch.int8)
        if self.axis is None:
            return ops.dequantize_per_tensor.default(self.integers, self.scale, 0, *bounds)
        return ops.dequantize_per_channel.default(
            self.integers, self.scales, self.zeros, self.axis, *bounds
        )


class Table(nn.Module):
    """Twice the rows of a quantized table."""

    def __init__(self, weight: nn.Module) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, indices: Tensor) -> Tensor:
        return F.embedding(indices, self.weight()) * 2


class Quantized(nn.Module):
    """`function` of rounded inputs and the weight, its result rounded."""

    def __init__(
        self,
        function: Callable[..., Tensor],
        weight: Weight | None = None,
        bias: int | None = None,
        out_scale: float = 0.043,
        enter: Callable[[Tensor], Tensor] = rounded,
        leave: Callable[..., Tensor] = rounded,
    ) -> None:
        super().__init__()
        self.function, self.weight, self.enter, self.leave = function, weight, enter, leave
        self.out_scale = out_scale
        self.bias = None if bias is None else nn.Parameter(torch.randn(bias))

    def forward(self, *inputs: Tensor) -> Tensor:
        entered = [self.enter(x) for x in inputs]
        more = () if self.weight is None else (self.weight(), self.bias)
        return self.leave(self.function(*entered, *more), self.out_scale, -ZERO)


def fused(module: nn.Module, inputs: Sequence[Tensor], **kwargs: Any) -> ExportedProgram:
    """Return the program of `module` with integer operators."""
    program = edge(module, tuple(inputs), **kwargs)
    run_passes(program, INTEGER)
    return program


def assert_one_step(
    program: ExportedProgram, module: Quantized, inputs: Sequence[Tensor], unequal: float = 0.02
) -> None:
    """Compare with the float arithmetic of the quantized program: equal to one step, most so.

    A bias is rounded to a whole number of products, so that a result may fall to the other side.
    """
    expected, actual = module(*inputs), program.module()(*inputs)
    steps = ((actual - expected) / module.out_scale).abs()
    assert steps.max() < 1.01
    assert (steps > 0.5).sum() <= 1 + unequal * steps.numel()


def on_device(program: ExportedProgram, inputs: Sequence[Tensor]) -> Tensor:
    """Return what the kernels compute."""
    file = EdgeProgramManager(program).to_executorch().buffer
    return torch.from_numpy(etx_runtime.load(file)(*[x.numpy() for x in inputs]))


def integer_operators(program: ExportedProgram) -> dict[str, int]:
    """Count the calls of namespace etx."""
    found = counts(program).items()
    return {name.split(".")[1]: count for name, count in found if name.startswith("etx.")}


def float_operators(program: ExportedProgram) -> list[str]:
    """Return the operators that read or write floats, other than the borders' conversions."""
    borders = ("quantize_per_tensor", "dequantize_per_tensor")
    found = []
    for node in program.graph.nodes:
        values = [node, *node.all_input_nodes] if node.op == "call_function" else []
        if any(v.meta["val"].is_floating_point() for v in values) and not any(
            name in str(node.target) or str(node.target).startswith("etx.") for name in borders
        ):
            found.append(str(node.target))
    return found
