# SPDX-License-Identifier: BSD-3-Clause
"""Layers with weights in bfloat16 in torch, and their names where the compiler is not installed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.library import Library
from torch.nn import functional

LINEAR = "Tensor input, Tensor weight, Tensor? bias"
CONV = f"{LINEAR}, SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups"


def linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the sums of exact products, float32."""
    wide = None if bias is None else bias.double()
    return functional.linear(input.double(), weight.double(), wide).float()


def conv(input: Tensor, weight: Tensor, bias: Tensor | None, *window: Any) -> Tensor:
    """Return the sums of exact products, float32."""
    *moves, groups = window
    wide = None if bias is None else bias.double()
    args = (input.double(), weight.double(), wide, *map(list, moves), False, [0], groups)
    return torch.ops.aten.convolution(*args).float()


def define_operators() -> Library:
    """Register the operators, and the names for their kernels, as long as the library lives."""
    library = Library("etx", "FRAGMENT")
    for name, schema, function in (("narrow_linear", LINEAR, linear), ("narrow_conv", CONV, conv)):
        if not hasattr(torch.ops.etx, name):
            library.define(f"{name}({schema}) -> Tensor")
            library.impl(name, function, "CompositeExplicitAutograd")
        library.define(f"{name}.out({schema}, *, Tensor(a!) out) -> Tensor(a!)")
    return library
