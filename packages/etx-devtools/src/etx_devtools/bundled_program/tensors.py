# SPDX-License-Identifier: BSD-3-Clause
"""Between arrays and the tensors of a bundle, in any dtype and dim order, with or without torch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from etx_schema import EtxError, scalar_type
from etx_schema._generated.bundled_program import Tensor
from etx_schema.dtypes import DTYPES

Array = np.ndarray[Any, Any]
BYTES = np.dtype(np.uint8)


class Bits:
    """A tensor of a type that NumPy lacks, as unsigned integers of its width."""

    def __init__(self, bits: Array, dtype: str) -> None:
        self.bits = bits
        self.dtype = dtype
        self.shape = bits.shape


def is_tensor(value: Any) -> bool:
    """Tell whether `value` is a NumPy array or number, a torch tensor, or bits with a dtype."""
    return isinstance(value, (np.ndarray, np.generic)) or _is_torch(value) or _is_foreign(value)


def dtype_of(value: Any) -> str:
    """Return the name of a tensor's dtype, such as ``float32``."""
    name = getattr(value.dtype, "name", None)
    return name if isinstance(name, str) else str(value.dtype).removeprefix("torch.")


def to_table(value: Any, dim_order: Sequence[int] = ()) -> Tensor:
    """Return a tensor as a bundle stores it: its bytes with the outermost of `dim_order` first."""
    name = dtype_of(value)
    try:
        number = scalar_type(name)
    except KeyError:
        raise EtxError(f"a bundle holds no {name}") from None
    shape = tuple(int(size) for size in value.shape)
    order = list(dim_order) if len(dim_order) == len(shape) else list(range(len(shape)))
    data = _torch_bytes(value, order) if _is_torch(value) else _numpy_bytes(value, order)
    return Tensor(scalar_type=number, sizes=list(shape), data=data, dim_order=order)


def to_array(tensor: Tensor) -> Array | Bits:
    """Return a checked tensor as an array with its sizes, which is a view of its bytes."""
    name, width = DTYPES[tensor.scalar_type]
    try:
        dtype, known = np.dtype(name), True
    except TypeError:
        dtype, known = np.dtype(f"u{width}"), False
    order = list(tensor.dim_order) or list(range(len(tensor.sizes)))
    stored = [tensor.sizes[dim] for dim in order]
    flat = np.frombuffer(tensor.data, BYTES)
    array = flat.view(dtype).reshape(stored).transpose(np.argsort(order).tolist())
    return array if known else Bits(array, name)


def as_array(value: Any) -> Any:
    """Return a torch tensor as an array, or as bits; any other value as it is."""
    return to_array(to_table(value)) if _is_torch(value) else value


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_foreign(value: Any) -> bool:
    return isinstance(getattr(value, "bits", None), np.ndarray) and hasattr(value, "dtype")


def _numpy_bytes(value: Any, order: list[int]) -> bytes:
    array = np.asarray(value.bits if _is_foreign(value) else value)
    array = array.transpose(order)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return array.tobytes()


def _torch_bytes(value: Any, order: list[int]) -> bytes:
    torch = sys.modules["torch"]
    tensor = value.detach().cpu()
    if tensor.layout is not torch.strided:
        raise EtxError(f"a bundle holds dense tensors, got one with layout {tensor.layout}")
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    tensor = tensor.permute(order).contiguous().reshape(-1)
    return bytes(tensor.view(torch.uint8).numpy())
