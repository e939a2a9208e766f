# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of what was recorded, and how far one is from another."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.utils.dlpack
from etx_schema import EtxError
from torch import Tensor

from etx_devtools.compare.metrics import Distance, distance

__all__ = ["as_tensor", "distance_of", "dtype_text"]


def dtype_text(dtype: torch.dtype) -> str:
    """Return the name of a dtype without its module."""
    return str(dtype).removeprefix("torch.")


def as_tensor(value: Any) -> Any:
    """Return an array as a tensor over its memory, and anything else as it is.

    Errors: EtxError for an array of no numbers.
    """
    if isinstance(value, (Tensor, bool, int, float, str)) or value is None:
        return value
    if isinstance(value, np.ndarray):
        if not (value.flags.writeable and value.dtype.isnative):
            value = value.astype(value.dtype.newbyteorder("="))
        try:
            return torch.from_numpy(value)
        except TypeError as error:
            raise EtxError(f"an array of {value.dtype} is not a tensor of numbers") from error
    tensor: Tensor = torch.utils.dlpack.from_dlpack(value)
    return tensor


def distance_of(got: Tensor, expected: Tensor) -> Distance:
    """Return how far `got` is from `expected`."""
    return distance(_array(got), _array(expected), dtype_text(got.dtype))


def _array(tensor: Tensor) -> Any:
    if tensor.dtype in (torch.bfloat16, torch.float16) or "float8" in str(tensor.dtype):
        tensor = tensor.to(torch.float32)
    return tensor.detach().resolve_conj().resolve_neg().numpy()
