# SPDX-License-Identifier: BSD-3-Clause
"""Constant int8 and int4 weights of linear layers whose inputs are real numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from etx_exir.integer.layout import Layouts
from etx_exir.integer.scales import weight_of
from etx_exir.ir.constants import Constants
from etx_exir.ir.dim_order import TO_COPY
from etx_exir.ir.ops import RESHAPES
from etx_exir.ir.packed_weights import COLUMNS, pack, pack_groups, pack_int4

INT4 = (-8, 7)
INF = float("inf")
FLOATS = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Rows:
    """A matrix (N, K) as integers from `low` to `high`, with scales (groups, N) in float32."""

    value: Tensor
    scales: Tensor
    low: int
    high: int
    name: str

    @property
    def group_size(self) -> int:
        """How many inputs have one scale."""
        return self.value.shape[1] // self.scales.shape[0]


@dataclass(frozen=True)
class Matrix:
    """A weight (N, K) as integers, with scales (K / group_size, N) in float32."""

    value: Tensor
    scales: Tensor
    group_size: int
    is_int4: bool
    name: str

    def packed(self) -> Tensor:
        """Return the integers as they lie in the file."""
        return pack_int4(self.value) if self.is_int4 else pack(self.value)

    def arguments(self, layouts: Layouts, with_sums: bool) -> list[Any]:
        """Store the packed weight, the sums of its groups and the scales; return them in order.

        Beside sums, scales of int4 that are bfloat16 numbers are stored as such.
        """
        groups, rows = self.scales.shape
        sums = self.value.long().reshape(rows, groups, self.group_size).sum(2).T.int()
        scales = self.scales
        if self.is_int4:
            sums, scales = pack_groups(sums), pack_groups(scales)
            half = scales.bfloat16()
            scales = half if with_sums and torch.equal(half.float(), scales) else scales
        else:
            sums, scales = sums[0], scales[0]
        stored = [layouts.constant(self.packed(), f"{self.name}_packed")]
        if with_sums:
            stored.append(layouts.constant(sums, f"{self.name}_sums"))
        return [*stored, layouts.constant(scales, f"{self.name}_scales")]


def rows_of(node: Any, constants: Constants) -> Rows | str:
    """Return the constant quantized matrix of which `node` is the float form."""
    shape = node.meta["val"].shape
    grouped = node.target in RESHAPES
    call = node.args[0] if grouped else node
    weight = weight_of(call, constants)
    if isinstance(weight, str):
        return weight
    if weight.axis not in (None, 0) or len(shape) != 2:
        return "the weight has a scale for each input, not for each output"
    rows, columns = shape
    size = weight.value.shape[1] if grouped and weight.value.dim() == 2 else columns
    if columns % size:
        return f"groups of {size} do not divide {columns} inputs"
    groups = columns // size
    scales = weight.scales.expand(rows * groups).reshape(rows, groups).T.float().contiguous()
    low, high = call.args[3:5] if weight.axis is None else call.args[4:6]
    return Rows(weight.value.reshape(rows, columns), scales, low, high, weight.name)


def matrix_of(node: Any, constants: Constants) -> Matrix | str:
    """Return the constant weight of which `node` is the float form, as kernels take it."""
    rows = rows_of(node, constants)
    if isinstance(rows, str):
        return rows
    groups, size = rows.scales.shape[0], rows.group_size
    is_int4 = INT4[0] <= rows.low and rows.high <= INT4[1]
    if groups > 1 and not is_int4:
        return f"the int8 weight has a scale for each {size} inputs, not one for each output"
    if groups > 1 and size % (2 * COLUMNS):
        return f"a scale is for {size} inputs, packed int4 takes multiples of {2 * COLUMNS}"
    return Matrix(rows.value, rows.scales, size, is_int4, rows.name)


def linear_call(
    node: Node,
    x: Node,
    ops: tuple[Any, Any],
    with_sums: bool,
    constants: Constants,
    layouts: Layouts,
) -> Node | str:
    """Return `node`, a linear layer, of the real tensor `x` by one of `ops`, for int8 and int4."""
    matrix = matrix_of(node.args[1], constants)
    if isinstance(matrix, str):
        return matrix
    dtype = x.meta["val"].dtype
    if dtype not in FLOATS:
        return f"the input is {dtype}, not one of {', '.join(map(str, FLOATS))}"
    bias = node.args[2] if len(node.args) > 2 else None
    stored = matrix.arguments(layouts, with_sums)
    size = [matrix.group_size, matrix.scales.shape[1]] if matrix.is_int4 else []
    given = converted(torch.float32, x, layouts)
    offset = None if bias is None else converted(torch.float32, bias, layouts)
    call = layouts.call(ops[matrix.is_int4], given, *stored, offset, *size, -INF, INF)
    return converted(dtype, call, layouts)


def converted(dtype: torch.dtype, node: Any, layouts: Layouts) -> Node:
    """Return `node` in `dtype`: what is quantized of half precision is computed in float32."""
    if node.meta["val"].dtype is dtype:
        found: Node = node
        return found
    return layouts.call(TO_COPY, node, dtype=dtype)
