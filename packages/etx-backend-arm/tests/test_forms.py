# SPDX-License-Identifier: BSD-3-Clause
"""Each operator of the table in both profiles, next to TOSA's reference model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import reference_model
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from integers import Between, integers
from lowered import delegates, lower
from torch import Tensor, nn

F = torch.nn.functional
IMAGE, ROWS, BATCHES = (1, 8, 6, 10), (3, 7, 20), (2, 3, 5, 6)
ONE = (IMAGE,)
PICKED, PAIR = torch.tensor([2, 0, 6]), torch.tensor([1, 0])
Function = Callable[..., Any]
FUNCTIONS: dict[str, Function] = {
    "add_number": lambda x: x + 1.5,
    "arctangent": torch.atan,
    "area": torch.asinh,
    "catenary": lambda x: torch.cosh(x * 0.5),
    "divide": lambda x: x / 3,
    "elu": F.elu,
    "exp": lambda x: torch.exp(x * 0.25),
    "from_number": lambda x: 3 - x,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "leaky_relu": F.leaky_relu,
    "log": lambda x: torch.log(x.abs() + 1),
    "negative": torch.neg,
    "reciprocal": lambda x: torch.reciprocal(x.abs() + 1),
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 1),
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "sine": torch.sin,
    "square": lambda x: x**2,
    "tanh": torch.tanh,
    "times_number": lambda x: x * 0.3,
}
LONGER = ("catenary", "exp", "log", "reciprocal", "rsqrt")
TABLES = {name for name in FUNCTIONS if name not in LONGER}
"""Of one operator: what the program computes for each integer is looked up, bit by bit."""
MOVES: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "concatenate": (lambda x, y: torch.cat([x, y], 1), (IMAGE, (1, 3, 6, 10))),
    "concatenate_rows": (lambda x, y: torch.cat([x, y, x], -1), (ROWS, ROWS)),
    "expand": (lambda x: x.expand(4, 3, 7, 20), (ROWS,)),
    "flip": (lambda x: x.flip(1, 3), ONE),
    "reverse": (lambda x: x.flip(2), ((1, 3, 6, 5),)),
    "index": (lambda x: x[:, :, [2, 0, -1, 2]], ONE),
    "index_select": (lambda x: x.index_select(1, PICKED), ONE),
    "index_select_first": (lambda x: x.index_select(0, PAIR), (ROWS,)),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 3), value=0.4), ONE),
    "pad_less": (lambda x: F.pad(x, (-1, 2, 1, -3)), ONE),
    "permute": (lambda x: x.permute(0, 3, 1, 2), ONE),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), ONE),
    "repeat": (lambda x: x.repeat(2, 1, 3, 1), (ROWS,)),
    "reshape": (lambda x: x.reshape(8, 60), ONE),
    "select": (lambda x: x[:, -2], ONE),
    "slice": (lambda x: x[:, 2:7], ONE),
    "slice_steps": (lambda x: x[:, 1::3], ONE),
    "slice_rows": (lambda x: x[..., 2::4], (ROWS,)),
    "split": (lambda x: x.split([3, 5], 1), ONE),
    "squeeze": (lambda x: x.squeeze(0), ONE),
    "stack": (lambda x, y: torch.stack([x, y, x], 1), (ROWS, ROWS)),
    "swap": (lambda x: x.transpose(1, 2), (ROWS,)),
    "unbind": (lambda x: x.unbind(1), (ROWS,)),
}
OTHERS: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "add": (torch.add, (IMAGE, IMAGE)),
    "add_less": (lambda x, y: torch.add(x, y, alpha=-2.5), (IMAGE, (1, 8, 1, 1))),
    "add_broadcast": (torch.add, (BATCHES, (5, 1))),
    "amax": (lambda x: x.amax(-1), (ROWS,)),
    "amin": (lambda x: x.amin((0, 2), keepdim=True), (ROWS,)),
    "average": (lambda x: F.avg_pool2d(x, 3, 2), ONE),
    "average_padded": (lambda x: F.avg_pool2d(x, 3, 2, padding=1), ONE),
    "average_up": (lambda x: F.avg_pool2d(x, 3, 2, padding=1, ceil_mode=True), ONE),
    "average_by_seven": (lambda x: F.avg_pool2d(x, (2, 3), 1, 1, divisor_override=7), ONE),
    "average_inside": (
        lambda x: F.avg_pool2d(x, (2, 3), 1, padding=1, count_include_pad=False),
        ONE,
    ),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), ONE),
    "bilinear_corners": (
        lambda x: F.interpolate(x, (11, 15), mode="bilinear", align_corners=True),
        ONE,
    ),
    "bilinear_of_one_row": (
        lambda x: F.interpolate(x, (5, 7), mode="bilinear", align_corners=True),
        ((1, 4, 1, 3),),
    ),
    "bilinear_to_one_row": (
        lambda x: F.interpolate(x, (1, 9), mode="bilinear", align_corners=True),
        ((1, 4, 6, 5),),
    ),
    "bmm": (torch.bmm, (ROWS, (3, 20, 4))),
    "layer_norm": (lambda x: F.layer_norm(x, (20,)), (ROWS,)),
    "layer_norm_planes": (lambda x: F.layer_norm(x, (7, 20)), (ROWS,)),
    "layer_norm_long": (lambda x: F.layer_norm(x, (1024,)), ((3, 1024),)),
    "matmul": (torch.matmul, (BATCHES, (2, 3, 6, 4))),
    "max_pool": (lambda x: F.max_pool2d(x, 3, 2, padding=1), ONE),
    "max_pool_up": (lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), ONE),
    "maximum": (torch.maximum, (IMAGE, IMAGE)),
    "mean": (lambda x: x.mean(-1), (ROWS,)),
    "mean_image": (lambda x: x.mean((2, 3)), ONE),
    "mean_channels": (lambda x: x.mean(1, keepdim=True), ONE),
    "minimum": (torch.minimum, (BATCHES, (6,))),
    "multiply": (torch.mul, (IMAGE, (1, 8, 1, 1))),
    "nearest": (lambda x: F.interpolate(x, scale_factor=3), ONE),
    "nearest_twice": (lambda x: F.interpolate(x, scale_factor=2), ONE),
    "softmax": (lambda x: torch.softmax(x, -1), (ROWS,)),
    "softmax_channels": (lambda x: torch.softmax(x, 1), ONE),
    "softmax_of_one": (lambda x: torch.softmax(x, -1), ((3, 1),)),
    "softmax_long": (lambda x: torch.softmax(x, -1), ((2, 1500),)),
    "subtract": (torch.sub, (IMAGE, IMAGE)),
    "subtract_part": (lambda x, y: torch.sub(x, y, alpha=0.3), (IMAGE, IMAGE)),
    "sum": (lambda x: x.sum((0, 2)), (ROWS,)),
}
FILTERS = torch.linspace(-1, 1, 60).reshape(4, 3, 5)
FLOATS: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "add_more": (lambda x, y: torch.add(torch.add(x, y), y, alpha=1.5), (IMAGE, IMAGE)),
    "arc_cosine": (lambda x: torch.acos(torch.tanh(x)), ONE),
    "arc_sine": (lambda x: torch.asin(torch.tanh(x)), ONE),
    "area_cosine": (lambda x: torch.acosh(x.abs() + 1), ONE),
    "area_tangent": (lambda x: torch.atanh(torch.tanh(x) * 0.9), ONE),
    "error_inverse": (lambda x: torch.erfinv(torch.tanh(x) * 0.99), ONE),
    "exponential_less_one": (torch.expm1, ONE),
    "hyperbolic_sine": (torch.sinh, ONE),
    "logarithm_of_one_more": (lambda x: torch.log1p(x.abs()), ONE),
    "logit": (lambda x: torch.logit(torch.sigmoid(x), 1e-3), ONE),
    "product": (lambda x: x.prod(1), ONE),
    "product_of_all": (lambda x: x.prod(), ((3, 4),)),
    "rounded": (lambda x: torch.round(x * 4), ONE),
    "sign": (torch.sign, ONE),
    "line": (
        lambda x: F.conv1d(x, FILTERS.to(x.dtype), stride=2, padding=1, dilation=2),
        ((2, 3, 20),),
    ),
    "mish_floats": (F.mish, ONE),
    "softplus_floats": (F.softplus, ONE),
    "softplus_steep": (lambda x: F.softplus(x * 20, beta=3, threshold=30), ONE),
    "quotient": (torch.div, (IMAGE, IMAGE)),
}
MANY = {**{name: (each, ONE) for name, each in FUNCTIONS.items()}, **MOVES, **OTHERS, **FLOATS}


class Whole(nn.Module):
    """A function as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


@cache
def lowered(name: str, profile: str) -> tuple[nn.Module, list[Tensor], bytes]:
    """Return a case's model, inputs and TOSA file: all of it is one delegate."""
    function, shapes = MANY[name]
    if profile == "INT":
        inputs = [integers(*shape, seed=i) for i, shape in enumerate(shapes)]
        model: nn.Module = Between(function, *inputs)
    else:
        generator = torch.Generator().manual_seed(0)
        inputs = [torch.randn(shape, generator=generator) for shape in shapes]
        model = Whole(function)
    spec = TosaCompileSpec(f"TOSA-1.0+{profile}")
    program = lower(model.eval(), *inputs, partitioner=TOSAPartitioner(spec))
    (delegate,) = delegates(program)
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    assert {n.target.__name__ for n in calls} <= {"executorch_call_delegate", "getitem"}
    return model, inputs, delegate.processed_bytes


def results(name: str, profile: str) -> list[tuple[np.ndarray, Tensor]]:
    """Return what the reference model makes, each with what the model makes."""
    model, inputs, graph = lowered(name, profile)
    actual = reference_model.run(graph, *(each.numpy() for each in inputs))
    return list(zip(actual, listed(model(*inputs)), strict=True))


def listed(made: Any) -> list[Tensor]:
    return list(made) if isinstance(made, (list, tuple)) else [made]


@pytest.mark.parametrize("name", [*sorted(TABLES), *MOVES, *OTHERS])
def test_integers_are_those_of_the_quantized_program(name: str) -> None:
    steps = [
        int(np.abs(actual.astype(int) - expected.numpy().astype(int)).max())
        for actual, expected in results(name, "INT")
    ]
    assert max(steps) <= (0 if name in TABLES else 1)


@pytest.mark.parametrize("name", MANY)
def test_floats_are_those_of_eager(name: str) -> None:
    for actual, expected in results(name, "FP"):
        torch.testing.assert_close(torch.from_numpy(actual), expected, rtol=1e-5, atol=1e-5)


SPECIAL = (0.0, 0.5, 1.0, 1.5, 2.5, 88.0, 9999.0, 1e4, 1e20, 3e38, float("inf"))
WITH_ENDS = (
    torch.acos,
    torch.acosh,
    torch.asin,
    torch.asinh,
    torch.atan,
    torch.atanh,
    torch.cosh,
    torch.erfinv,
    torch.expm1,
    torch.log1p,
    torch.logit,
    torch.relu,
    torch.round,
    torch.sign,
    torch.sinh,
    torch.sqrt,
)


@pytest.mark.parametrize("function", WITH_ENDS, ids=lambda each: each.__name__)
def test_ends_of_functions_are_those_of_eager(function: Function) -> None:
    x = torch.tensor([*SPECIAL, *(-each for each in SPECIAL), float("nan")])
    program = lower(Whole(function), x, partitioner=TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP")))
    (delegate,) = delegates(program)
    (actual,) = reference_model.run(delegate.processed_bytes, x.numpy())
    torch.testing.assert_close(
        torch.from_numpy(actual), function(x), rtol=1e-6, atol=1e-6, equal_nan=True
    )


@pytest.mark.parametrize(("profile", "threshold"), [("FP", 2.0), ("INT", 20.0)])
def test_softplus_that_stays_outside_is_taken_apart(profile: str, threshold: float) -> None:
    spec = TosaCompileSpec(f"TOSA-1.0+{profile}")
    read = torch.ops.quantized_decomposed.dequantize_per_tensor.default

    def softplus(x: Tensor) -> Tensor:
        floats = read(x, 0.1, 0, -128, 127, torch.int8) if profile == "INT" else x
        return F.softplus(floats, threshold=threshold)

    x = (
        torch.linspace(-40, 40, 20).to(torch.int8)
        if profile == "INT"
        else torch.linspace(-4, 4, 20)
    )
    program = lower(Whole(softplus).eval(), x, partitioner=TOSAPartitioner(spec))
    assert torch.ops.aten.softplus.default not in {n.target for n in program.graph.nodes}
