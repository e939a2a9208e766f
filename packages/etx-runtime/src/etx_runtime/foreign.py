# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of types that NumPy lacks: bfloat16, float8 and complex32."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from etx_runtime import _native

Array = np.ndarray[Any, Any]
FLOAT8 = {
    "float8_e4m3fn": (3, 7, (0x7F, 0xFF)),
    "float8_e4m3fnuz": (3, 8, (0x80,)),
    "float8_e5m2fnuz": (2, 16, (0x80,)),
}
"""Bits of the mantissa, bias of the exponent, and the bytes that are not numbers."""


class ForeignArray(NDArrayOperatorsMixin):
    """An array of bfloat16, float8 or complex32: its bits, and how to read them.

    `np.asarray`, operators and NumPy's functions see its numbers: those of ml_dtypes where it is
    installed, else float32 or complex64, which hold them exactly. `torch.from_dlpack` and others
    that know the type share its memory.
    """

    __slots__ = ("bits", "dtype")

    def __init__(self, bits: Array, dtype: str) -> None:
        self.bits = bits
        """Unsigned integers of the elements' width, of any strides."""
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(self.bits.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.bits.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.bits.size

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.bits.nbytes

    def numpy(self) -> Array:
        """Return the numbers: as ml_dtypes where it is installed, else as float32 or complex64."""
        known = getattr(_ml_dtypes(), self.dtype, None)
        return numbers(self.bits, self.dtype) if known is None else self.bits.view(known)

    def item(self) -> Any:
        """Return the one element as a Python number."""
        return numbers(self.bits, self.dtype).item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        return numbers(self.bits, self.dtype).tolist()

    def __getitem__(self, index: Any) -> ForeignArray:
        return ForeignArray(np.asarray(self.bits[index]), self.dtype)

    def __len__(self) -> int:
        return len(self.bits)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [x.numpy() if isinstance(x, ForeignArray) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)

    def __dlpack__(self, **options: Any) -> Any:
        return _native.from_bits(self.bits, self.dtype).__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return _native.from_bits(self.bits, self.dtype).__dlpack_device__()

    def __reduce__(self) -> Any:
        return ForeignArray, (self.bits, self.dtype)

    def __repr__(self) -> str:
        text = np.array2string(numbers(self.bits, self.dtype), separator=", ", prefix="array(")
        return f"array({text}, dtype={self.dtype})"


def numbers(bits: Array, dtype: str) -> Array:
    """Return what `bits` of type `dtype` are as float32, or complex64: every one exactly."""
    if dtype == "bfloat16":
        return _shifted(bits, np.uint32, 16).view(np.float32)
    if dtype == "float8_e5m2":
        return _shifted(bits, np.uint16, 8).view(np.float16).astype(np.float32)
    if dtype == "complex32":
        parts = np.ascontiguousarray(bits).reshape(-1).view(np.float16).astype(np.float32)
        return parts.view(np.complex64).reshape(bits.shape)
    mantissa, bias, nans = FLOAT8[dtype]
    fraction = (bits & ((1 << mantissa) - 1)).astype(np.float32) / (1 << mantissa)
    exponent = ((bits & 0x7F) >> mantissa).astype(np.int32)
    least = np.maximum(exponent, 1) - bias
    found = np.ldexp(fraction + (exponent > 0), least).astype(np.float32)
    found = np.where(bits & 0x80, -found, found)
    return np.where(np.isin(bits, nans), np.float32(np.nan), found)


def _shifted(bits: Array, wider: Any, width: int) -> Array:
    return np.asarray(bits.astype(wider) << width, wider)


def _ml_dtypes() -> Any:
    try:
        return import_module("ml_dtypes")
    except ImportError:
        return None


def to_numpy(value: Any) -> Any:
    """Return an output with only NumPy's arrays."""
    if isinstance(value, list):
        return [to_numpy(item) for item in value]
    return value.numpy() if isinstance(value, ForeignArray) else value


def to_torch(value: Any) -> Any:
    """Return an output with tensors of torch, which share the memory of the arrays."""
    torch: Any = import_module("torch")
    if isinstance(value, list):
        return [to_torch(item) for item in value]
    if isinstance(value, ForeignArray):
        return torch.from_dlpack(value)
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value
