# SPDX-License-Identifier: BSD-3-Clause
"""What is computed between integers is two steps from eager at most, in int8 or in float."""

from __future__ import annotations

from typing import Any

import cases
import etx_runtime
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge_transform_and_lower
from torch import Tensor, nn

ops = torch.ops.quantized_decomposed
FULL = (-128, 127, torch.int8)
STEPS = 120
"""Of the largest number: integers hold all of them."""


def rounded(x: Tensor, most: float, zero_point: int) -> Tensor:
    if x.dtype is not torch.float32:
        return x
    at = most / STEPS, zero_point
    numbers: Tensor = ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *at, *FULL), *at, *FULL)
    return numbers


def most_of(x: Tensor) -> float:
    return max(float(x.abs().max()), 1e-3) if x.dtype is torch.float32 else 1.0


class Between(nn.Module):
    """Modules whose arguments and first results are rounded to integers, each on its own."""

    def __init__(self, modules: list[nn.Module], arguments: list[tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(modules)
        self.given = [[most_of(x) for x in each] for each in arguments]
        self.most = [1.0] * len(modules)
        with torch.no_grad():
            self.most = [most_of(result) for result in self(*arguments)]

    def forward(self, *arguments: Any) -> list[Tensor]:
        results = []
        for part, given, most, each in zip(
            self.parts, self.given, self.most, arguments, strict=True
        ):
            result = part(*(rounded(x, m, 3) for x, m in zip(each, given, strict=True)))
            first = result[0] if isinstance(result, (tuple, list)) else result
            results.append(rounded(first, most, -4))
        return results


def check(names: list[str], modules: list[nn.Module], arguments: list[tuple[Tensor, ...]]) -> None:
    model = Between([module.eval() for module in modules], arguments).eval()
    with torch.no_grad():
        program = torch.export.export(model, tuple(arguments))
        partitioner = XnnpackPartitioner(heavy_only=False)
        edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
        found = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")(*arguments)
        expected = model(*arguments)
    off = {}
    for name, one, other, most in zip(names, found, expected, model.most, strict=True):
        off[name] = float((one.double() - other.double()).abs().max()) / most * STEPS
    assert {name: steps for name, steps in off.items() if steps > 2.05} == {}


@pytest.mark.parametrize("group", ["ELEMENTWISE", "BINARY", "POOLS", "SHAPES", "CHOICES", "NORMS"])
def test_cases_between_integers(group: str) -> None:
    rows = [case for case in getattr(cases, group) if case.dynamic is None]
    check(
        [case.name for case in rows],
        [case.module() for case in rows],
        [case.arguments()[0] for case in rows],
    )


class Reduced(nn.Module):
    def __init__(self, dims: tuple[int, ...], keep: bool, name: str) -> None:
        super().__init__()
        self.dims, self.keep, self.name = dims, keep, name

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = getattr(x, self.name)(self.dims, keepdim=self.keep)
        return result


def test_sums_and_means_between_integers() -> None:
    forms = [
        (dims, keep, name)
        for dims in ((2, 3), (1,), (3,), (-1, -2), (1, 3), (0,))
        for keep in (False, True)
        for name in ("sum", "mean")
    ]
    x = torch.randn(2, 4, 6, 5, generator=torch.Generator().manual_seed(0))
    names = [" ".join(map(str, form)) for form in forms]
    check(names, [Reduced(*form) for form in forms], [(x,)] * len(forms))


def test_peaks_that_a_resize_flattens_are_not_cut_off() -> None:
    peaks = torch.zeros(1, 3, 4, 4)
    peaks[:, :, 1, 2] = 5.0
    halves = [(5, 5), (3, 3), (8, 8)]
    resized = [nn.UpsamplingBilinear2d(size) for size in halves]
    smooth = [nn.Upsample(size, mode="bilinear") for size in halves]
    names = [f"{kind} {size}" for kind in ("corners", "centres") for size in halves]
    check(names, [*resized, *smooth], [(peaks,)] * len(names))


def test_two_unknown_sizes_between_integers() -> None:
    model = Between([Reduced((2,), True, "mean")], [(torch.ones(2, 3, 8) * 3,)])
    sizes = {0: torch.export.Dim("a", max=6), 1: torch.export.Dim("b", max=9)}
    x = torch.randn(4, 7, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        program = torch.export.export(model, ((x,),), dynamic_shapes=(((sizes,),),))
        partitioner = XnnpackPartitioner(heavy_only=False)
        edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    (found,) = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")((x,))
    (expected,) = model((x,))
    torch.testing.assert_close(found, expected, rtol=0, atol=3.05 / STEPS)
