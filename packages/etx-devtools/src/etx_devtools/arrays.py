# SPDX-License-Identifier: BSD-3-Clause
"""Recorded tensors as arrays; apart, since reading a dump's times needs no NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from etx_schema import Blob, ProgramError
from etx_schema._generated.etdump import Tensor
from etx_schema.dtypes import DTYPES


def array_of(tensor: Tensor, debug_buffer: Blob) -> npt.NDArray[Any]:
    """Return a recorded tensor, a view of the buffer, as `to_python` does."""
    if tensor.scalar_type not in DTYPES:
        raise ProgramError(f"a recorded tensor has the unknown scalar type {tensor.scalar_type}")
    name, width = DTYPES[tensor.scalar_type]
    try:
        dtype = np.dtype(name)
    except TypeError:
        dtype = np.dtype(f"V{width}" if width not in (1, 2, 4) else f"u{width}")
    view = memoryview(debug_buffer).cast("B")
    sizes = list(tensor.sizes)
    count = 1
    for size in sizes:
        count *= size
    if count == 0:
        return np.empty([max(0, size) for size in sizes], dtype)
    bad = tensor.offset < 0 or any(size < 0 for size in sizes)
    if bad or tensor.offset + count * dtype.itemsize > len(view):
        raise ProgramError(
            f"a {name} tensor of sizes {sizes} at {tensor.offset} does not lie in the debug buffer "
            f"of {len(view)} bytes"
        )
    flat = np.frombuffer(view, dtype, count, tensor.offset)
    steps = [abs(step) for step in tensor.strides]
    if len(steps) != len(sizes):
        return flat.reshape(sizes)
    reach = 1 + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
    if reach != count:
        return flat.reshape(sizes)
    strides = [step * dtype.itemsize for step in steps]
    return np.lib.stride_tricks.as_strided(flat, sizes, strides, writeable=False)
