# SPDX-License-Identifier: BSD-3-Clause
"""Rows that torchao's operators round to int8, each with a range that is chosen at run time."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from etx_exir.integer.scales import INT8, called
from etx_exir.ir.ops import arguments

__all__ = ["CHOOSE", "DEQUANTIZE", "QUANTIZE", "Rows", "bounds", "is_by_row", "rounded_rows"]

CHOOSE, QUANTIZE, DEQUANTIZE = (
    f"torchao.{name}_affine.default" for name in ("choose_qparams", "quantize", "dequantize")
)


@dataclass(frozen=True)
class Rows:
    """A tensor whose rows are rounded to int8, and the nodes that hold their scales and zeros."""

    x: Node
    choose: Node
    scale: Node
    zero: Node
    is_symmetric: bool


def bounds(given: Mapping[str, Any]) -> tuple[int, int]:
    """Return the least and the greatest integer of a call with these arguments."""
    low, high = given["quant_min"], given["quant_max"]
    return int(INT8[0] if low is None else low), int(INT8[1] if high is None else high)


def is_by_row(given: Mapping[str, Any], x: Node, dtype: Any) -> bool:
    """Tell whether a call with these arguments has a range of int8 for each row of `x`."""
    row = [*[1] * (x.meta["val"].dim() - 1), x.meta["val"].shape[-1]]
    return dtype is torch.int8 and bounds(given) == INT8 and [*given["block_size"]] == row


def rounded_rows(quantize: Any) -> Rows | None:
    """Return what ``quantize`` rounds, if it does so with a range of each row of it."""
    if called(quantize) != QUANTIZE:
        return None
    given = arguments(quantize)
    x, scale, zero = given["input"], given["scale"], given["zero_point"]
    picks = [pick for pick in (scale, zero) if getattr(pick, "target", None) is operator.getitem]
    if [pick.args[1] for pick in picks] != [0, 1] or scale.args[0] is not zero.args[0]:
        return None
    choose = scale.args[0]
    if called(choose) != CHOOSE:
        return None
    chosen = arguments(choose)
    if chosen["input"] is not x or chosen["mapping_type"] not in ("SYMMETRIC", "ASYMMETRIC"):
        return None
    for each, dtype in ((given, given["output_dtype"]), (chosen, chosen["target_dtype"])):
        if not is_by_row(each, x, dtype):
            return None
    return Rows(x, choose, scale, zero, chosen["mapping_type"] == "SYMMETRIC")
