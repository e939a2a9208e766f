# SPDX-License-Identifier: BSD-3-Clause
"""Functions of numbers that a program may compute at run time, and what computes them."""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

__all__ = ["BINARY", "FUNCTIONS", "OTHER", "READS", "TENSOR", "UNARY"]

aten = torch.ops.aten

BINARY: dict[Any, str] = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.floordiv: "floordiv",
    operator.truediv: "truediv",
    operator.mod: "mod",
    operator.eq: "eq",
    operator.gt: "gt",
    operator.lt: "lt",
    operator.ge: "ge",
    operator.le: "le",
    torch.sym_max: "sym_max",
    torch.sym_min: "sym_min",
    max: "sym_max",
    min: "sym_min",
}
UNARY: dict[Any, str] = {
    operator.neg: "neg",
    math.ceil: "ceil",
    math.trunc: "trunc",
    round: "round",
    torch.sym_float: "sym_float",
    torch.sym_int: "sym_int",
    torch.sym_not: "sym_not",
    operator.not_: "sym_not",
}
TENSOR: dict[Any, tuple[str, str]] = {
    operator.pow: ("aten::pow", "Tensor_Tensor_out"),
    operator.and_: ("aten::bitwise_and", "Tensor_out"),
    operator.or_: ("aten::bitwise_or", "Tensor_out"),
    operator.lshift: ("aten::bitwise_left_shift", "Tensor_out"),
    operator.rshift: ("aten::bitwise_right_shift", "Tensor_out"),
    operator.abs: ("aten::abs", "out"),
    abs: ("aten::abs", "out"),
    torch.sym_sqrt: ("aten::sqrt", "out"),
}
"""Without a primitive operator: the kernel that computes them on tensors of one element."""
OTHER = frozenset({math.floor, operator.ne, torch.sym_ite, torch.sym_sum})
READS: dict[Any, tuple[str, str]] = {
    aten.sym_size.int: ("aten::sym_size", "int"),
    aten.sym_numel.default: ("aten::sym_numel", ""),
    aten._local_scalar_dense.default: ("aten::_local_scalar_dense", ""),
    aten.item.default: ("aten::_local_scalar_dense", ""),
}
"""From a tensor to a number."""

FUNCTIONS = frozenset((*BINARY, *UNARY, *TENSOR, *OTHER))
