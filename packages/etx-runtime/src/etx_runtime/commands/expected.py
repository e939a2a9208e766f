# SPDX-License-Identifier: BSD-3-Clause
"""Compare outputs with what they should be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from etx_runtime import bits
from etx_runtime.commands.samples import RAW, read_arrays
from etx_runtime.errors import InputError
from etx_runtime.values import ValueInfo

Array = np.ndarray[Any, Any]


def read_expected(
    paths: Sequence[str], outputs: tuple[ValueInfo, ...], calls: int
) -> list[list[Array]]:
    """Read arrays for all outputs that are tensors: of each call, or only of the last one."""
    arrays = [array for path in paths for array in read_arrays(path)]
    count = sum(info.kind == "tensor" for info in outputs)
    if not count or len(arrays) not in (count, count * calls):
        asked = f"{count} for the last call" + (f", or {count * calls} for all" * (calls > 1))
        raise InputError(f"--expect: expected {asked}, got {len(arrays)} arrays")
    return [arrays[start : start + count] for start in range(0, len(arrays), count)]


def compare(
    values: Sequence[Any],
    outputs: tuple[ValueInfo, ...],
    expected: Sequence[Array],
    atol: float,
    rtol: float,
) -> list[dict[str, Any]]:
    """Return a row for each tensor output: whether it is close, and how far it is off."""
    tensors = [(i, info) for i, info in enumerate(outputs) if info.kind == "tensor"]
    return [
        {"output": index, **compare_tensor(values[index], info.dtype or "", reference, atol, rtol)}
        for (index, info), reference in zip(tensors, expected, strict=True)
    ]


def compare_tensor(
    value: Any, dtype: str, reference: Array, atol: float, rtol: float
) -> dict[str, Any]:
    """Return whether a tensor `matches`, the largest difference and where; else the `reason`.

    Allowed is `atol + rtol * |expected|`; NaN equals NaN, an infinity only itself. What NumPy
    cannot compute with is compared byte by byte.
    """
    got = bits.as_numpy(value)
    if reference.dtype == RAW:
        if reference.nbytes != got.nbytes:
            return _differs(f"has {got.nbytes} bytes, expected {reference.nbytes}")
        reference = reference.view(got.dtype).reshape(got.shape)
    if got.shape != reference.shape:
        return _differs(f"has shape {list(got.shape)}, expected {list(reference.shape)}")
    x, y = bits.as_numbers(value, dtype), bits.as_numbers(bits.of_type(reference, dtype), dtype)
    if x is None or y is None:
        is_same = bool(np.array_equal(got, reference))
        return {"matches": True} if is_same else _differs(f"differs ({dtype} is compared exactly)")
    x, y = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
        allowed = np.where(np.isfinite(y), atol + rtol * np.abs(y), 0.0)
        off = ~(difference <= allowed)
        relative = np.where(difference == 0, 0.0, difference / np.abs(y))
    row: dict[str, Any] = {"matches": not off.any(), "different": int(off.sum())}
    if x.size:
        candidates = np.where(np.isnan(difference), np.inf, difference)
        place = np.unravel_index(int(candidates.argmax()), x.shape)
        row["largest_difference"] = float(candidates[place])
        row["largest_relative"] = float(np.where(np.isnan(relative), np.inf, relative).max())
        row["at"] = [int(position) for position in place]
        row["got"], row["expected"] = float(x[place]), float(y[place])
    if off.any():
        row["reason"] = (
            f"{row['different']} of {x.size} elements differ, most at {row['at']}: "
            f"{row['got']:.6g}, expected {row['expected']:.6g}"
        )
    return row


def _differs(reason: str) -> dict[str, Any]:
    return {"matches": False, "reason": reason}
