# SPDX-License-Identifier: BSD-3-Clause
"""Passes that say for ExecuTorch's kernels what they compute otherwise than eager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etx_exir.passes.base import Pass
from etx_exir.passes.fit.align_dim_orders import AlignDimOrders
from etx_exir.passes.fit.bound_shifts import BoundShifts
from etx_exir.passes.fit.crop_first import CropFirst
from etx_exir.passes.fit.divide_exactly import DivideExactly
from etx_exir.passes.fit.multiply_powers import MultiplyPowers
from etx_exir.passes.fit.round_numbers import RoundNumbers
from etx_exir.passes.fit.scatter_in_place import ScatterInPlace
from etx_exir.passes.fit.split_sums import SplitSums
from etx_exir.passes.fit.unite_dtypes import UniteDtypes
from etx_exir.passes.fit.widen_halves import WidenHalves

__all__ = ["fitting"]


def fitting(rows: Mapping[str, Any]) -> tuple[Pass, ...]:
    """Return the passes for a target with these rows of kernels, in their order."""
    return (
        UniteDtypes(),
        CropFirst(),
        MultiplyPowers(),
        DivideExactly(),
        SplitSums(),
        BoundShifts(),
        RoundNumbers(),
        ScatterInPlace(),
        WidenHalves(),
        AlignDimOrders(rows),  # last: what those before add has layouts, too
    )
