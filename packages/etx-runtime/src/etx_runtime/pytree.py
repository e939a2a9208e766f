# SPDX-License-Identifier: BSD-3-Clause
"""Fold and unfold nested containers as ``torch.export`` recorded them."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from etx_runtime.errors import InputError, LoadError

PROTOCOL = 1
MAPPINGS = {"builtins.dict": dict, "collections.OrderedDict": OrderedDict}


@dataclass(frozen=True)
class Spec:
    """The shape of a container; a leaf has no kind."""

    kind: str | None = None
    keys: tuple[Any, ...] = ()
    children: tuple[Spec, ...] = field(default=())

    @property
    def is_leaf(self) -> bool:
        """Tell whether this is a value, no container."""
        return self.kind is None

    @property
    def is_flat(self) -> bool:
        """Tell whether all children are values."""
        return all(child.is_leaf for child in self.children)


def parse(text: str) -> Spec:
    """Read a pytree spec of torch's JSON protocol."""
    try:
        protocol, tree = json.loads(text)
        if protocol != PROTOCOL:
            raise ValueError(f"protocol {protocol}")
        return _parse(tree)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise LoadError(f"the program's container spec cannot be read: {error}") from error


def _parse(tree: Any) -> Spec:
    if tree["type"] is None:
        return Spec()
    children = tuple(_parse(child) for child in tree["children_spec"])
    keys: tuple[Any, ...] = ()
    if tree["type"] in MAPPINGS:
        keys = tuple(json.loads(tree["context"]))
        if len(keys) != len(children):
            raise ValueError("a dict has more keys than values")
    return Spec(tree["type"], keys, children)


def flatten(value: Any, spec: Spec, path: str) -> Iterator[Any]:
    """Yield the leaves of `value`, which must have the shape of `spec`."""
    if spec.is_leaf:
        yield value
        return
    for child, item, step in zip(spec.children, *_items(value, spec, path), strict=True):
        yield from flatten(item, child, path + step)


def _items(value: Any, spec: Spec, path: str) -> tuple[list[Any], list[str]]:
    if spec.kind in MAPPINGS:
        if not isinstance(value, Mapping):
            raise InputError(f"{path}: expected a dict, got {type(value).__name__}")
        if set(value) != set(spec.keys):
            raise InputError(
                f"{path}: expected a dict with the keys {_list(spec.keys)}, got {_list(value)}"
            )
        return [value[key] for key in spec.keys], [f"[{key!r}]" for key in spec.keys]
    count = len(spec.children)
    is_sequence = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    if not is_sequence or len(value) != count:
        given = f"{len(value)} items" if is_sequence else type(value).__name__
        kind = str(spec.kind).rpartition(".")[2]
        raise InputError(f"{path}: expected a {kind} of {count} items, got {given}")
    return list(value), [f"[{i}]" for i in range(count)]


def unflatten(leaves: Iterator[Any], spec: Spec) -> Any:
    """Build the containers of `spec` around the next leaves."""
    if spec.is_leaf:
        return next(leaves)
    items = [unflatten(leaves, child) for child in spec.children]
    if spec.kind in MAPPINGS:
        return MAPPINGS[spec.kind](zip(spec.keys, items, strict=True))
    return items if spec.kind == "builtins.list" else tuple(items)


def count_leaves(spec: Spec) -> int:
    """Return the number of values in a container."""
    return 1 if spec.is_leaf else sum(count_leaves(child) for child in spec.children)


def _list(keys: Any) -> str:
    return ", ".join(repr(key) for key in keys) or "none"
