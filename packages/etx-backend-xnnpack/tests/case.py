# SPDX-License-Identifier: BSD-3-Clause
"""What a case is: a module of seeded weights, its arguments, how it is quantized."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from etx_quant import (
    Int8Quantizer,
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
    get_weight_quantization_config,
    quantize,
)
from torch import nn

Shape = tuple[int, ...]
SEED = 11
STEP = 1.01 / 127
"""One step of the result's largest number."""


class Call(nn.Module):
    """A function as a module; `parts` are modules that it is given first."""

    def __init__(self, function: Callable[..., Any], *parts: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.parts = nn.ModuleList(parts)

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*self.parts, *args)


class With(nn.Module):
    """A function of constants of these shapes, and of the arguments."""

    def __init__(self, function: Callable[..., Any], *shapes: Shape) -> None:
        super().__init__()
        self.function = function
        self.weights = nn.ParameterList(torch.randn(shape) for shape in shapes)

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*self.weights, *args)


@dataclass(frozen=True, eq=False)
class Case:
    """A module of seeded weights, and the shapes of its arguments, normal numbers.

    `tol` is relative to the largest number of the result. `positive` makes the arguments so.
    `calls` are further shapes for `dynamic` ones. With a `recipe` it is quantized first, and
    compared with the quantized model. `half` ones are of float16, arguments too. `outside` are the
    operators that stay out.
    """

    name: str
    make: Callable[[], nn.Module]
    shapes: Sequence[Shape]
    tol: float = 1e-5
    positive: bool = False
    dynamic: Any = None
    calls: Sequence[Sequence[Shape]] = ()
    recipe: str = ""
    outside: tuple[str, ...] = ()
    half: bool = False

    def module(self) -> nn.Module:
        """Return the module in evaluation mode, the same one each time; quantized by a recipe."""
        torch.default_generator.manual_seed(SEED)  # torch.manual_seed formats stacks, for GPUs
        module = self.make().eval()
        module = module.half() if self.half else module
        return module if not self.recipe else quantized(module, self)

    def arguments(self) -> list[tuple[torch.Tensor, ...]]:
        """Return the arguments of each call; the first is what is exported with."""
        generator = torch.Generator().manual_seed(SEED)
        return [
            tuple(self._tensor(shape, generator) for shape in shapes)
            for shapes in (self.shapes, *self.calls)
        ]

    def dynamic_shapes(self) -> object:
        """Return what `torch.export` is given for the dimensions that may change."""
        if self.dynamic is None:
            return None
        sizes = tuple(self.dynamic)
        return (sizes,) if isinstance(self.make(), (Call, With)) else sizes

    def _tensor(self, shape: Shape, generator: torch.Generator) -> torch.Tensor:
        tensor = torch.randn(shape, generator=generator)
        tensor = tensor.abs() + 0.1 if self.positive else tensor
        return tensor.half() if self.half else tensor


RECIPES: dict[str, Callable[[], Any]] = {
    "static": lambda: get_symmetric_quantization_config(is_per_channel=True),
    "all": lambda: get_symmetric_quantization_config(is_per_channel=True),
    "static_of_tensor": get_symmetric_quantization_config,
    "dynamic": lambda: get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True),
    "dynamic_of_tensor": lambda: get_symmetric_quantization_config(is_dynamic=True),
    "weight8": get_weight_quantization_config,
    "weight4": lambda: get_weight_quantization_config(bits=4),
    "rows8": lambda: get_weight_quantization_config(is_dynamic=True),
    "rows4": lambda: get_weight_quantization_config(bits=4, is_dynamic=True),
    "groups4": lambda: get_weight_quantization_config(bits=4, group_size=32, is_dynamic=True),
}


def quantized(module: nn.Module, case: Case) -> nn.Module:
    """Return `module` with the operators of the case's recipe."""
    quantizer = Int8Quantizer() if case.recipe == "all" else XNNPACKQuantizer()
    quantizer.set_global(RECIPES[case.recipe]())
    return quantize(module, case.arguments(), quantizer, dynamic_shapes=case.dynamic_shapes())


def function(name: str, call: Callable[..., Any], *shapes: Shape, **options: Any) -> Case:
    """Return a case of a function without weights."""
    return Case(name, lambda: Call(call), shapes, **options)


def layer(name: str, make: Callable[[], nn.Module], *shapes: Shape, **options: Any) -> Case:
    """Return a case of a module."""
    return Case(name, make, shapes, **options)


def in_half(case: Case, tol: float) -> Case:
    """Return a case in float16, of which eager's result is that far from ours."""
    return replace(case, name=f"half_{case.name}", tol=tol, half=True)


def int8(name: str, make: Callable[[], nn.Module], *shapes: Shape, **options: Any) -> Case:
    """Return a case of a module in int8, which differs from the quantized one by a step."""
    given = {"recipe": "static", "tol": STEP, **options}
    return Case(f"int8_{name}", make, shapes, **given)
