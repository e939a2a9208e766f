# SPDX-License-Identifier: BSD-3-Clause
"""Container structures as the text that the file carries, torch's JSON form."""

from __future__ import annotations

import json
from typing import Any

from torch.utils import _pytree as pytree

from etx_exir.emit.errors import EmitError

PROTOCOL = 1
LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


def dump_treespec(spec: pytree.TreeSpec | None) -> str:
    """Return `spec` as text; containers that torch cannot name keep their type and positions."""
    return "" if spec is None else json.dumps([PROTOCOL, _node(spec)])


def _node(spec: pytree.TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return LEAF
    name, context = _identity(spec)
    children = [_node(child) for child in spec.children()]
    return {"type": name, "context": context, "children_spec": children}


def _identity(spec: pytree.TreeSpec) -> tuple[str, str]:
    definition = pytree.SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    name = getattr(definition, "serialized_type_name", None)
    if definition is None or not isinstance(name, str) or name.startswith("NO_SERIALIZED"):
        return _unnamed(spec)
    if definition.to_dumpable_context is None:
        return name, _context(spec)
    try:
        return name, str(definition.to_dumpable_context(spec.context))
    except NotImplementedError:
        return _unnamed(spec)


def _context(spec: pytree.TreeSpec) -> str:
    try:
        return json.dumps(spec.context)
    except TypeError as error:
        raise EmitError(
            f"a {spec.type.__name__} among the inputs or outputs has keys that JSON cannot hold:"
            f" {spec.context!r}; use strings, numbers, booleans or None"
        ) from error


def _unnamed(spec: pytree.TreeSpec) -> tuple[str, str]:
    """Name a type of which the device only needs the positions of its fields."""
    kind: Any = spec.type
    if kind is pytree.namedtuple:  # type: ignore[attr-defined]
        kind = spec.context
    if kind.__module__.startswith("torch.return_types"):
        return "builtins.tuple", "null"
    fields = getattr(kind, "_fields", None) or getattr(kind, "__dataclass_fields__", None)
    context = json.dumps(list(fields)) if fields else "null"
    return f"{kind.__module__}.{kind.__qualname__}", context
