# SPDX-License-Identifier: BSD-3-Clause
"""What XNNPACK refuses, or computes wrongly, is said otherwise or stays outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import etx_runtime
import pytest
import torch
import torch.nn.functional as F
from case import Call
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge_transform_and_lower
from etx_exir.delegation.explain import outside
from etx_quant import quantize
from torch import Tensor, nn
from torch.export import Dim

PAIRS = (
    ((0, None), (-1, -0.5)),
    ((0, 6), (None, -0.25)),
    ((-1, -0.5), (0, None)),
    ((None, -0.25), (1, 2)),
    ((0, 1), (None, 0)),
    ((0, 1), (0.25, 2)),
)
WEIGHT = torch.linspace(-1, 1, 16).reshape(4, 4)
BEHIND: dict[str, Callable[[Tensor], Tensor]] = {
    "nothing": lambda x: x,
    "linear": lambda x: F.linear(x, WEIGHT),
    "conv2d": lambda x: F.conv2d(x, WEIGHT.reshape(4, 4, 1, 1)),
    "add": lambda x: x + x.flip(1),
    "avg_pool": lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
    "max_pool": lambda x: F.max_pool2d(x, 2),
    "mean": lambda x: x.mean((2, 3)),
    "abs": torch.abs,
    "hardsigmoid": F.hardsigmoid,
    "bmm": lambda x: x @ x.mT,
}


def lowered(module: nn.Module, x: Tensor, dynamic: Any = None) -> Any:
    """Return the program of a module with all delegated that can be."""
    given = None if dynamic is None else ((dynamic,),)
    with torch.no_grad():
        program = torch.export.export(module.eval(), (x,), dynamic_shapes=given)
        return to_edge_transform_and_lower(
            program, partitioner=[XnnpackPartitioner(heavy_only=False)]
        )


def check(edge: Any, module: nn.Module, calls: Sequence[Tensor]) -> None:
    """Compare with eager."""
    model = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")
    for x in calls:
        with torch.no_grad():
            torch.testing.assert_close(model(x), module(x), rtol=1e-5, atol=1e-5)


def clamped_twice(f: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, ...]:
    """Return pairs of clamps behind a function, one with a move between them."""
    results = [f(x).clamp(*first).clamp(*second) for first, second in PAIRS]
    first, second = PAIRS[0]
    return (*results, f(x).clamp(*first).flatten().clamp(*second))


@pytest.mark.parametrize("name", BEHIND)
def test_clamps_without_common_numbers(name: str) -> None:
    module = Call(lambda x: clamped_twice(BEHIND[name], x))
    x = torch.randn(1, 4, 4, 4, generator=torch.Generator().manual_seed(0))
    edge = lowered(module, x)
    model = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")
    for one, other in zip(model(x), module(x), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("high", [1 + 1e-4, 1 + 1e-3])
@pytest.mark.parametrize("name", ["nothing", "linear", "conv2d", "abs"])
def test_narrow_clamps_of_float16(name: str, high: float) -> None:
    weights = {"linear": WEIGHT, "conv2d": WEIGHT.reshape(4, 4, 1, 1)}
    layers = {"linear": F.linear, "conv2d": F.conv2d}
    weight = weights[name].half() if name in weights else None
    f = BEHIND[name] if weight is None else lambda x: layers[name](x, weight)
    module = Call(lambda x: f(x).clamp(1, high))
    x = torch.randn(1, 4, 4, 4).half()
    model = etx_runtime.load(lowered(module, x).to_executorch().buffer, outputs="torch")
    torch.testing.assert_close(model(x), module(x), rtol=1e-3, atol=0)


def test_int8_clamps_without_common_numbers() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(4, 4, 1)

        def forward(self, x: Tensor) -> Tensor:
            return F.hardtanh(F.relu6(self.conv(x)), -1.0, -0.5) * 2

    torch.manual_seed(0)
    x = torch.randn(1, 4, 4, 4)
    model = quantize(Net().eval(), [(x,)], recipe="int8")
    found = etx_runtime.load(lowered(model, x).to_executorch().buffer, outputs="torch")(x)
    torch.testing.assert_close(found, torch.full_like(x, -1.0), rtol=0.02, atol=0)


@pytest.mark.parametrize("kernel", [(1, 2), (2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("stride", [(2, 1), (1, 3), (3, 3)])
@pytest.mark.parametrize("pool", [F.max_pool2d, F.avg_pool2d])
def test_windows_with_gaps(
    pool: Callable[..., Tensor], stride: tuple[int, int], kernel: tuple[int, int]
) -> None:
    module = Call(lambda x: F.relu(pool(x, kernel, stride)))
    x = torch.randn(1, 3, 8, 7)
    check(lowered(module, x), module, [x])


@pytest.mark.parametrize("dim", range(6))
def test_steps_over_six_dimensions(dim: int) -> None:
    def f(x: Tensor) -> Tensor:
        index = [slice(None)] * 6
        index[dim] = slice(1, None, 2)
        return (x * 2)[tuple(index)] + 1

    x = torch.randn(2, 4, 2, 4, 2, 4)
    edge = lowered(Call(f), x)
    assert not list(outside(edge.exported_program()))
    check(edge, Call(f), [x])


UNKNOWN = {0: Dim("batch", max=5), 1: Dim("rows", max=9)}
OF_UNKNOWN: dict[str, Callable[[Tensor], Tensor]] = {
    "steps": lambda x: F.linear(x, WEIGHT)[..., ::2] + x[..., 1::2],
    "turned": lambda x: torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2),
    "one slope": lambda x: F.prelu(F.linear(x, WEIGHT), torch.tensor([0.2])),
}


@pytest.mark.parametrize("name", OF_UNKNOWN)
def test_several_sizes_of_run_time(name: str) -> None:
    module = Call(OF_UNKNOWN[name])
    calls = [torch.randn(shape) for shape in ((2, 3, 4), (1, 1, 4), (5, 9, 4), (2, 3, 4))]
    check(lowered(module, calls[0], UNKNOWN), module, calls)


@pytest.mark.parametrize("name", ["rsqrt", "pow"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_roots_of_zero(dtype: torch.dtype, name: str) -> None:
    module = Call(torch.rsqrt if name == "rsqrt" else lambda x: x**-0.5)
    x = torch.tensor([0.0, 4.0, 0.25, 2.0, 0.0, 9.0, 1.0, 3.0, 0.0], dtype=dtype)
    model = etx_runtime.load(lowered(module, x).to_executorch().buffer, outputs="torch")
    tolerance = 1e-5 if dtype is torch.float32 else 2e-3
    torch.testing.assert_close(model(x), module(x), rtol=tolerance, atol=0)
