# SPDX-License-Identifier: BSD-3-Clause
"""Container structures as the text that the file carries, torch's JSON form."""

from __future__ import annotations

import json
from typing import Any

from torch.utils import _pytree as pytree

from etx_exir.errors import EmitError

PROTOCOL = 1
LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}
MAPPINGS = frozenset({"builtins.dict", "collections.OrderedDict", "collections.defaultdict"})


def dump_treespec(spec: pytree.TreeSpec | None) -> str:
    """Return `spec` as text; containers that torch cannot name keep their type and positions."""
    if spec is None:
        return ""
    return json.dumps([PROTOCOL, _node(spec)], cls=pytree.EnumEncoder)


def _node(spec: pytree.TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return LEAF
    name, context = _identity(spec)
    children = [_node(child) for child in spec.children()]
    return {"type": name, "context": context, "children_spec": children}


def _identity(spec: pytree.TreeSpec) -> tuple[str, Any]:
    """Return the name of a container and its context, which torch makes text or an object."""
    definition = pytree.SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    name = getattr(definition, "serialized_type_name", None)
    if definition is None or not isinstance(name, str) or name.startswith("NO_SERIALIZED"):
        return _unnamed(spec)
    if name == "collections.defaultdict":
        return name, _defaultdict(spec)
    if definition.to_dumpable_context is None:
        return name, _text(spec.context, spec if name in MAPPINGS else None)
    try:
        return name, definition.to_dumpable_context(spec.context)
    except NotImplementedError:
        return _unnamed(spec)


def _defaultdict(spec: pytree.TreeSpec) -> dict[str, Any]:
    factory, keys = spec.context
    _text(keys, spec)
    return {
        "default_factory_module": getattr(factory, "__module__", None),
        "default_factory_name": getattr(factory, "__qualname__", None),
        "dict_context": keys,
    }


def _text(context: Any, mapping: pytree.TreeSpec | None = None) -> str:
    """Return `context` as JSON; of a `mapping` it is the keys, which the device needs."""
    try:
        return json.dumps(context, cls=pytree.EnumEncoder)
    except TypeError as error:
        if mapping is None:
            return "null"
        raise EmitError(
            f"a {mapping.type.__name__} among the inputs or outputs has keys that JSON cannot"
            f" hold: {context!r}; use strings, numbers, booleans or None"
        ) from error


def _unnamed(spec: pytree.TreeSpec) -> tuple[str, str]:
    """Name a type of which the device only needs the fields in their order."""
    kind: Any = spec.type
    if kind is pytree.namedtuple:  # type: ignore[attr-defined]
        kind = spec.context
    if kind.__module__.startswith("torch.return_types"):
        return "builtins.tuple", "null"
    name = f"{kind.__module__}.{kind.__qualname__}"
    return name, _text(list(getattr(kind, "_fields", ())) or spec.context)
