# SPDX-License-Identifier: BSD-3-Clause
"""Fold and unfold nested containers as ``torch.export`` recorded them."""

from __future__ import annotations

import builtins
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from etx_runtime.errors import InputError, LoadError

PROTOCOL = 1
DEFAULTDICT = "collections.defaultdict"
DEQUE = "collections.deque"
NAMEDTUPLE = "collections.namedtuple"
MAPPINGS: dict[str, Any] = {
    "builtins.dict": dict,
    "collections.OrderedDict": OrderedDict,
    DEFAULTDICT: defaultdict,
}
SEQUENCES = {"builtins.tuple": tuple, "builtins.list": list, "torch.Size": tuple, DEQUE: deque}


class Spec(NamedTuple):
    """The shape of a container; a leaf has no kind."""

    kind: str | None = None
    keys: tuple[Any, ...] = ()
    """Of a mapping its keys, of a class with named parts their names."""
    children: tuple[Spec, ...] = ()
    context: Any = None

    @property
    def is_leaf(self) -> bool:
        """Tell whether this is a value, no container."""
        return self.kind is None

    @property
    def is_flat(self) -> bool:
        """Tell whether all children are values."""
        return all(child.is_leaf for child in self.children)

    @property
    def label(self) -> str:
        """What a message calls it."""
        name = self.context if self.kind == NAMEDTUPLE else self.kind
        return str(name).rpartition(".")[2]


class Container(NamedTuple):
    """How a registered class is taken apart and put together."""

    cls: type
    flatten: Callable[[Any], Iterable[Any]] | None
    unflatten: Callable[[list[Any]], Any] | None


_containers: dict[str, Container] = {}


def register_container(
    cls: type,
    *,
    name: str | None = None,
    flatten: Callable[[Any], Iterable[Any]] | None = None,
    unflatten: Callable[[list[Any]], Any] | None = None,
) -> None:
    """Take and return objects of `cls` where programs have a container called `name`.

    `name` is what torch knows the class by, the module and qualified name unless it was registered
    under another. A namedtuple or dataclass needs no functions; of another class `flatten` returns
    the parts in order and `unflatten` makes an object of them. Classes that are not registered come
    back as tuples.
    """
    key = name or f"{cls.__module__}.{cls.__qualname__}"
    _containers[key] = Container(cls, flatten, unflatten)


def parse(text: str) -> Spec:
    """Read a pytree spec of torch's JSON protocol."""
    from json import loads

    try:
        protocol, tree = loads(text)
        if protocol != PROTOCOL:
            raise ValueError(f"protocol {protocol}")
        return _parse(tree)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise LoadError(f"the program's container spec cannot be read: {reason}") from error


def _parse(tree: Any) -> Spec:
    kind = tree["type"]
    if kind is None:
        return Spec()
    children = tuple(_parse(child) for child in tree["children_spec"])
    context = _read(tree.get("context"))
    keys: tuple[Any, ...] = ()
    if kind in MAPPINGS:
        listed = _read(context["dict_context"]) if kind == DEFAULTDICT else context
        keys = tuple(_key(key) for key in listed)
        if len(keys) != len(children) or len(set(keys)) != len(keys):
            raise ValueError(f"a dict has the keys {_list(keys)} and {len(children)} values")
    elif kind not in SEQUENCES and kind != NAMEDTUPLE:
        keys = _part_names(context, len(children))
    return Spec(kind, keys, children, context)


def _read(context: Any) -> Any:
    """Return what a context says; text that is not JSON as it is."""
    if not isinstance(context, str):
        return context
    from json import loads

    try:
        return loads(context)
    except ValueError:
        return context


def _key(key: Any) -> Any:
    if isinstance(key, list):
        return tuple(_key(part) for part in key)
    if isinstance(key, dict):
        return str(key["name"])
    return key


def _part_names(context: Any, count: int) -> tuple[str, ...]:
    """Return the fields of a namedtuple or dataclass, nothing for another class."""
    if isinstance(context, list) and len(context) == 2 and isinstance(context[0], list):
        context = context[0]
    is_names = isinstance(context, list) and all(isinstance(name, str) for name in context)
    return tuple(context) if is_names and len(context) == count else ()


def flatten(value: Any, spec: Spec, path: str) -> Iterator[Any]:
    """Yield the leaves of `value`, which must have the shape of `spec`."""
    if spec.is_leaf:
        yield value
        return
    for child, item, step in zip(spec.children, *_items(value, spec, path), strict=True):
        yield from flatten(item, child, path + step)


def _items(value: Any, spec: Spec, path: str) -> tuple[Sequence[Any], Sequence[str]]:
    if spec.kind in MAPPINGS:
        return _mapping_items(value, spec, path), [f"[{key!r}]" for key in spec.keys]
    found = _containers.get(_class_name(spec))
    if found is not None and isinstance(value, found.cls) and found.flatten is not None:
        value = tuple(found.flatten(value))
    elif spec.keys and not isinstance(value, Sequence):
        missing = [name for name in spec.keys if not hasattr(value, name)]
        if missing:
            given = type(value).__name__
            raise InputError(
                f"{path}: expected a {spec.label} with {_list(spec.keys)}, got {given} without "
                f"{_list(missing)}"
            )
        return [getattr(value, name) for name in spec.keys], [f".{name}" for name in spec.keys]
    count = len(spec.children)
    is_sequence = isinstance(value, (Sequence, deque)) and not isinstance(value, (str, bytes))
    if not is_sequence or len(value) != count:
        given = f"{len(value)} items" if is_sequence else type(value).__name__
        raise InputError(f"{path}: expected a {spec.label} of {count} items, got {given}")
    return value, [f"[{i}]" for i in range(count)]


def _mapping_items(value: Any, spec: Spec, path: str) -> list[Any]:
    if not isinstance(value, Mapping):
        given = type(value).__name__
        raise InputError(f"{path}: expected a dict with the keys {_list(spec.keys)}, got {given}")
    if any(isinstance(key, Enum) for key in value):
        value = {key.name if isinstance(key, Enum) else key: item for key, item in value.items()}
    missing = [key for key in spec.keys if key not in value]
    unknown = [key for key in value if key not in spec.keys]
    if missing or unknown:
        problems = [f"{_list(missing)} is missing"] if missing else []
        problems += [f"{_list(unknown)} is unknown"] if unknown else []
        raise InputError(
            f"{path}: expected a dict with the keys {_list(spec.keys)}: {' and '.join(problems)}"
        )
    return [value[key] for key in spec.keys]


def _class_name(spec: Spec) -> str:
    return str(spec.context if spec.kind == NAMEDTUPLE else spec.kind)


def unflatten(leaves: Iterator[Any], spec: Spec) -> Any:
    """Build the containers of `spec` around the next leaves."""
    if spec.is_leaf:
        return next(leaves)
    items = [unflatten(leaves, child) for child in spec.children]
    if spec.kind == DEFAULTDICT:
        return defaultdict(_factory(spec.context), zip(spec.keys, items, strict=True))
    if spec.kind in MAPPINGS:
        return MAPPINGS[spec.kind](zip(spec.keys, items, strict=True))
    if spec.kind == DEQUE:
        return deque(items, spec.context if isinstance(spec.context, int) else None)
    if spec.kind in SEQUENCES:
        return SEQUENCES[spec.kind](items)
    found = _containers.get(_class_name(spec))
    return tuple(items) if found is None else _build(found, spec, items)


def _build(found: Container, spec: Spec, items: list[Any]) -> Any:
    if found.unflatten is not None:
        return found.unflatten(items)
    if not spec.keys or issubclass(found.cls, tuple):
        return found.cls(*items)
    absent = spec.context[1] if len(spec.context) == 2 and isinstance(spec.context[1], list) else []
    return found.cls(**dict(zip(spec.keys, items, strict=True)), **dict.fromkeys(absent))


def _factory(context: Any) -> Callable[[], Any] | None:
    """Return a factory that is one of the builtin types, else None."""
    name, module = context.get("default_factory_name"), context.get("default_factory_module")
    found = getattr(builtins, str(name), None) if module == "builtins" else None
    return found if isinstance(found, type) else None


def count_leaves(spec: Spec) -> int:
    """Return the number of values in a container."""
    return 1 if spec.is_leaf else sum(count_leaves(child) for child in spec.children)


def leaf_paths(spec: Spec, path: str = "") -> Iterator[str]:
    """Yield where each value lies: `['key'][0].field`."""
    if spec.is_leaf:
        yield path
        return
    names = spec.keys or range(len(spec.children))
    is_class = bool(spec.keys) and spec.kind not in MAPPINGS
    for name, child in zip(names, spec.children, strict=True):
        yield from leaf_paths(child, f"{path}.{name}" if is_class else f"{path}[{name!r}]")


def _list(keys: Iterable[Any]) -> str:
    return ", ".join(repr(key) for key in keys) or "none"
