# SPDX-License-Identifier: BSD-3-Clause
"""Compare outputs with what they should be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from etx_schema import EtxError
from etx_schema.calls import read_calls

from etx_runtime import _native, bits
from etx_runtime.commands.samples import RAW, place_of
from etx_runtime.errors import InputError
from etx_runtime.values import ValueInfo

Array = np.ndarray[Any, Any]


def read_expected(
    paths: Sequence[str], outputs: tuple[ValueInfo, ...], calls: int
) -> list[list[Array]]:
    """Read arrays for all outputs that are tensors: of each call, or only of the last one."""
    tensors = [i for i, info in enumerate(outputs) if info.kind == "tensor"]
    others = [i for i in range(len(outputs)) if i not in tensors]
    places = [place_of(info) for info in outputs]
    try:
        found = read_calls(paths, places, others, word="output")
    except EtxError as error:
        raise InputError(f"--expect: {error}") from error
    if len(found) not in (1, calls):
        asked = "1 call, the last" + f", or {calls}" * (calls > 1)
        given = f"--expect {', '.join(paths)}"
        raise InputError(f"{given}: expected arrays of {asked}, got those of {len(found)}")
    return [[call[i] for i in tensors] for call in found]


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

    `etx::compare` judges, as on a board: allowed is `atol + rtol * |expected|`, of integers `atol`;
    NaN equals NaN, an infinity itself, bits themselves.
    """
    got = bits.as_numpy(value)
    if reference.dtype == RAW:
        if reference.nbytes != got.nbytes:
            return _differs(f"has {got.nbytes} bytes, expected {reference.nbytes}")
        reference = reference.view(got.dtype).reshape(got.shape)
    if got.shape != reference.shape:
        return _differs(f"has shape {list(got.shape)}, expected {list(reference.shape)}")
    one, other = _alike(got, bits.as_numpy(bits.of_type(reference, dtype)), dtype)
    known = dtype if one is got and dtype else one.dtype.name
    found = _native.compare(one, other, known, atol, rtol)
    if found["reason"]:
        return _differs(f"{found['reason']}: {one.dtype}, expected {other.dtype}")
    row: dict[str, Any] = {"matches": found["passed"], "different": found["different"]}
    if found["worst"] >= 0:
        row["at"] = [int(place) for place in np.unravel_index(found["worst"], got.shape)]
    if "got" in found:
        row["largest_difference"] = found["max_absolute"]
        row["largest_relative"] = found["max_relative"]
        row["got"], row["expected"] = found["got"], found["expected"]
    if not found["passed"]:
        row["reason"] = f"{row['different']} of {got.size} elements differ, "
        row["reason"] += (
            f"most at {row['at']}: {row['got']:.6g}, expected {row['expected']:.6g}"
            if "got" in row
            else f"first at {row['at']} ({dtype} is compared exactly)"
        )
    return row


def _alike(got: Array, reference: Array, dtype: str) -> tuple[Array, Array]:
    """Return both as numbers of one type where a file holds the expected ones as another."""
    if got.dtype == reference.dtype:
        return got, reference
    numbers = bits.as_numbers(bits.of_type(got, dtype), dtype)
    if numbers is None or reference.dtype.kind not in "biufc":
        return got, reference
    common = np.result_type(numbers, reference)
    return numbers.astype(common), reference.astype(common)


def _differs(reason: str) -> dict[str, Any]:
    return {"matches": False, "reason": reason}
