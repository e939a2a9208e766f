# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of types that NumPy lacks (bfloat16, float8): as their bits in files, as numbers in text.

Their bits are unsigned integers of the elements' width.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from etx_runtime import _native
from etx_runtime.foreign import FLOAT8, ForeignArray, numbers

Array = np.ndarray[Any, Any]


def is_numpy_type(dtype: str) -> bool:
    """Tell whether NumPy has a type of this name."""
    try:
        return np.dtype(dtype).kind in "biufc"
    except TypeError:
        return False


def as_numpy(value: Any) -> Array:
    """Return `value` as an array that NumPy can write: of its bits where NumPy lacks the type."""
    if isinstance(value, ForeignArray):
        return value.bits
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcU":
        return value
    if not hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        return np.asarray(value)
    bits: Array = _native.to_bits(value)
    return bits


def of_type(array: Array, dtype: str) -> Any:
    """Return bits as an object of type `dtype`; arrays of NumPy's types and others as they are."""
    if is_numpy_type(dtype) or array.dtype.kind not in "uV":
        return array
    unsigned = np.ascontiguousarray(array)
    if array.dtype.kind == "V" and array.dtype.itemsize in (1, 2, 4, 8):
        unsigned = unsigned.view(f"u{array.dtype.itemsize}")
    unsigned = unsigned.reshape(array.shape)
    known = _native.from_bits(unsigned, dtype) is not None
    return ForeignArray(unsigned, dtype) if known else array


def from_float32(values: Array, dtype: str) -> Any:
    """Return float32 `values` cut off to `dtype`, None where that is not known here."""
    if dtype != "bfloat16":
        return None
    bits = (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return ForeignArray(bits.reshape(values.shape), dtype)


def as_numbers(value: Any, dtype: str = "") -> Array | None:
    """Return `value` as an array of numbers to compute with, None where that is not known here."""
    array = as_numpy(value)
    if array is value or array.dtype.kind not in "u":
        return array if array.dtype.kind in "biuf" else None
    known = dtype in ("bfloat16", "float8_e5m2", *FLOAT8)
    return numbers(array, dtype) if known else None
