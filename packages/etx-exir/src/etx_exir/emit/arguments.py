# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of operators as value indices, by the types of the schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from etx_exir.emit.values import Values
from etx_exir.errors import EmitError
from etx_exir.ir.layout import LAYOUTS, MEMORY_FORMATS, SCALAR_TYPES

Lookup = Callable[[Node], int]


def encode(values: Values, lookup: Lookup, value: Any, kind: Any) -> int:
    """Return the index of `value`, an argument whose schema type is `kind`."""
    kind = _without_optional(kind)
    if value is None:
        return values.null()
    if isinstance(value, Node):
        return lookup(value)
    if isinstance(value, (list, tuple)):
        return _encode_list(values, lookup, value, kind)
    if isinstance(kind, torch.ListType):
        return _encode_list(values, lookup, [value], kind)
    return encode_scalar(values, value, number=str(kind) == "float")


def encode_scalar(values: Values, value: Any, number: bool = False) -> int:
    """Return the index of a Python scalar or of one of torch's enumerations."""
    if isinstance(value, bool):
        return values.boolean(value)
    if isinstance(value, float) or (number and isinstance(value, int)):
        return values.double(value)
    if isinstance(value, int):
        return values.integer(value)
    if isinstance(value, str):
        return values.string(value)
    if isinstance(value, torch.dtype) and value in SCALAR_TYPES:
        return values.integer(SCALAR_TYPES[value])
    if isinstance(value, torch.memory_format):
        return values.integer(MEMORY_FORMATS[value])
    if isinstance(value, torch.layout) and value in LAYOUTS:
        return values.integer(LAYOUTS[value])
    if isinstance(value, torch.device):
        return values.null()
    raise EmitError(
        f"an argument {value!r} of type {type(value).__name__} cannot be stored in a file"
    )


def _encode_list(values: Values, lookup: Lookup, items: Sequence[Any], kind: Any) -> int:
    inner = kind.getElementType() if isinstance(kind, torch.ListType) else None
    if inner is not None and isinstance(inner, torch.OptionalType):
        return values.optional_tensor_list([-1 if i is None else lookup(i) for i in items])
    name = str(inner) if inner is not None else _guess(items)
    if name == "Tensor":
        return values.tensor_list([lookup(item) for item in items])
    if name == "float":
        return values.double_list(items)
    if name == "bool":
        return values.bool_list(items)
    boxed = [lookup(i) if isinstance(i, Node) else encode_scalar(values, i) for i in items]
    return values.int_list(boxed)


def _guess(items: Sequence[Any]) -> str:
    if items and all(isinstance(i, Node) and _is_tensor(i) for i in items):
        return "Tensor"
    if items and all(isinstance(i, bool) for i in items):
        return "bool"
    return "float" if items and all(isinstance(i, float) for i in items) else "int"


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _without_optional(kind: Any) -> Any:
    return kind.getElementType() if isinstance(kind, torch.OptionalType) else kind
