# SPDX-License-Identifier: BSD-3-Clause
"""Names and sizes of element types."""

from __future__ import annotations

import math

from etx_schema._generated.program import ScalarType, Tensor
from etx_schema.errors import ProgramError

MAX_RANK = 16

# number: (name, bytes an element); numbers, names and sizes are ATen's.
DTYPES = {
    0: ("uint8", 1),
    1: ("int8", 1),
    2: ("int16", 2),
    3: ("int32", 4),
    4: ("int64", 8),
    5: ("float16", 2),
    6: ("float32", 4),
    7: ("float64", 8),
    8: ("complex32", 4),
    9: ("complex64", 8),
    10: ("complex128", 16),
    11: ("bool", 1),
    12: ("qint8", 1),
    13: ("quint8", 1),
    14: ("qint32", 4),
    15: ("bfloat16", 2),
    16: ("quint4x2", 1),
    17: ("quint2x4", 1),
    18: ("bits1x8", 1),
    19: ("bits2x4", 1),
    20: ("bits4x2", 1),
    21: ("bits8", 1),
    22: ("bits16", 2),
    23: ("float8_e5m2", 1),
    24: ("float8_e4m3fn", 1),
    25: ("float8_e5m2fnuz", 1),
    26: ("float8_e4m3fnuz", 1),
    27: ("uint16", 2),
    28: ("uint32", 4),
    29: ("uint64", 8),
}

_INTEGRAL = ("int8", "int16", "int32", "int64", "uint8")
_FLOATING = ("bfloat16", "float16", "float32", "float64")
_COMPLEX = ("complex32", "complex64", "complex128")
_UNSIGNED = ("uint16", "uint32", "uint64")
DTYPE_SETS = {  # names for targets' rows, the largest first
    "any": (*_FLOATING, *_INTEGRAL, "bool", *_COMPLEX, *_UNSIGNED),
    "real": (*_FLOATING, *_INTEGRAL),
    "integral": _INTEGRAL,
    "floating": _FLOATING,
    "complex": _COMPLEX,
    "unsigned": _UNSIGNED,
}


def dtype_name(scalar_type: int) -> str:
    """Return the name torch and numpy use, such as ``float32``."""
    return DTYPES[scalar_type][0] if scalar_type in DTYPES else f"dtype {int(scalar_type)}"


def scalar_type(name: str) -> ScalarType:
    """Return the number of a dtype's name."""
    for number, (known, _) in DTYPES.items():
        if known == name:
            return ScalarType(number)
    raise KeyError(name)


def tensor_nbytes(tensor: Tensor) -> int:
    """Return the bytes of a tensor's elements (of its upper bound, when its shape is dynamic)."""
    if tensor.scalar_type not in DTYPES:
        raise ProgramError(f"a tensor has the unknown scalar type {int(tensor.scalar_type)}")
    if len(tensor.sizes) > MAX_RANK or any(size < 0 for size in tensor.sizes):
        raise ProgramError(f"a tensor has the sizes {tensor.sizes[: MAX_RANK + 1]}")
    return math.prod(tensor.sizes) * DTYPES[tensor.scalar_type][1]
