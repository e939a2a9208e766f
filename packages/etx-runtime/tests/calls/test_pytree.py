# SPDX-License-Identifier: BSD-3-Clause
"""Containers as docs/program-format.md describes their text."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import etx_runtime
import pytest
from etx_runtime import InputError, LoadError, pytree

LEAF = {"type": None, "context": None, "children_spec": []}
Point = namedtuple("Point", ["x", "y"])


@dataclass
class Pair:
    left: Any
    right: Any
    label: str | None = "unset"


class Bag:
    def __init__(self, items: list[Any]) -> None:
        self.items = items


class Color(Enum):
    RED = 1


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    pytree._containers.clear()


def node(kind: str, context: Any, *children: Any) -> dict[str, Any]:
    return {"type": kind, "context": context, "children_spec": list(children)}


def parse(tree: Any) -> pytree.Spec:
    return pytree.parse(json.dumps([1, tree]))


def both_ways(tree: Any, value: Any) -> Any:
    """Flatten `value`, and build the container again."""
    spec = parse(tree)
    leaves = list(pytree.flatten(value, spec, "x"))
    assert len(leaves) == pytree.count_leaves(spec) == len(list(pytree.leaf_paths(spec)))
    return pytree.unflatten(iter(leaves), spec)


CASES = [
    (node("builtins.tuple", "null", LEAF, LEAF), (1, 2)),
    (node("builtins.list", "null", LEAF), [1]),
    (node("builtins.list", "null"), []),
    (node("torch.Size", "null", LEAF, LEAF), (3, 4)),
    (node("builtins.dict", '["b", "a"]', LEAF, LEAF), {"b": 1, "a": 2}),
    (node("collections.OrderedDict", '["b", "a"]', LEAF, LEAF), OrderedDict(b=1, a=2)),
    (node("collections.deque", "null", LEAF, LEAF), deque([1, 2])),
    (node("collections.deque", "3", LEAF, LEAF), deque([1, 2], 3)),
    (node("builtins.tuple", "null", LEAF), (None,)),
]


@pytest.mark.parametrize(("tree", "value"), CASES)
def test_standard_containers(tree: Any, value: Any) -> None:
    result = both_ways(tree, value)
    assert result == value
    assert type(result) is type(value)
    if isinstance(value, dict):
        assert list(result) == list(value)
    if isinstance(value, deque):
        assert result.maxlen == value.maxlen


def test_keys_keep_their_order() -> None:
    keys = [3, None, 0.5, "s", [1, [2]], {"__enum__": True, "fqn": "m.Color", "name": "RED"}]
    tree = node("builtins.dict", json.dumps(keys), *[LEAF] * 6)
    given = {Color.RED: 6, (1, (2,)): 5, "s": 4, 0.5: 3, None: 2, 3: 1}
    result = both_ways(tree, given)
    assert list(result.items()) == [
        *((3, 1), (None, 2), (0.5, 3), ("s", 4), ((1, (2,)), 5), ("RED", 6))
    ]


@pytest.mark.parametrize(
    ("module", "name", "factory"),
    [
        ("builtins", "list", list),
        (None, None, None),
        ("os", "system", None),
        ("builtins", "x", None),
    ],
)
def test_defaultdict(module: str | None, name: str | None, factory: Any) -> None:
    context = {"default_factory_module": module, "default_factory_name": name}
    tree = node("collections.defaultdict", {**context, "dict_context": ["k"]}, LEAF)
    result = both_ways(tree, {"k": 1})
    assert isinstance(result, defaultdict)
    assert (dict(result), result.default_factory) == ({"k": 1}, factory)


def test_factories_are_types() -> None:
    context = {"default_factory_module": "builtins", "default_factory_name": "eval"}
    tree = node("collections.defaultdict", {**context, "dict_context": ["k"]}, LEAF)
    assert both_ways(tree, {"k": 1}).default_factory is None


def test_namedtuples() -> None:
    known = node("collections.namedtuple", "models.Point", LEAF, LEAF)
    other = node("models.Point", '["x", "y"]', LEAF, LEAF)
    for tree in (known, other):
        assert type(both_ways(tree, Point(1, 2))) is tuple
        assert both_ways(tree, (1, 2)) == (1, 2)
    etx_runtime.register_container(Point, name="models.Point")
    for tree in (known, other):
        result = both_ways(tree, (1, 2))
        assert isinstance(result, Point)
        assert result == Point(1, 2)


def test_dataclasses() -> None:
    name = f"{Pair.__module__}.{Pair.__qualname__}"
    tree = node(name, '[["left", "right"], ["label"]]', LEAF, node("builtins.list", "null", LEAF))
    assert both_ways(tree, Pair(1, [2])) == (1, [2])
    assert both_ways(tree, (1, [2])) == (1, [2])
    etx_runtime.register_container(Pair)
    assert both_ways(tree, Pair(1, [2])) == Pair(1, [2], None)
    assert list(pytree.leaf_paths(parse(tree), "x")) == ["x.left", "x.right[0]"]
    with pytest.raises(InputError, match=r"x: expected a Pair with 'left', 'right', got int"):
        both_ways(tree, 3)


def test_other_classes() -> None:
    tree = node("models.Bag", "null", LEAF, LEAF)
    assert both_ways(tree, (1, 2)) == (1, 2)
    with pytest.raises(InputError, match="x: expected a Bag of 2 items, got Bag"):
        both_ways(tree, Bag([1, 2]))
    etx_runtime.register_container(
        Bag, name="models.Bag", flatten=lambda bag: bag.items, unflatten=Bag
    )
    assert both_ways(tree, Bag([1, 2])).items == [1, 2]


@pytest.mark.parametrize(
    ("tree", "value", "message"),
    [
        (CASES[0][0], (1, 2, 3), r"^x: expected a tuple of 2 items, got 3 items"),
        (CASES[0][0], "ab", r"^x: expected a tuple of 2 items, got str"),
        (CASES[4][0], {"b": 1}, r"^x: expected a dict with the keys 'b', 'a': 'a' is missing"),
        (CASES[4][0], {"b": 1, "a": 2, "c": 3}, r"'b', 'a': 'c' is unknown"),
        (CASES[4][0], {"b": 1, "c": 3}, r"'a' is missing and 'c' is unknown"),
        (CASES[4][0], [1, 2], r"expected a dict with the keys 'b', 'a', got list"),
        (
            node("builtins.dict", '["k"]', node("builtins.list", "null", CASES[4][0])),
            {"k": [{"b": 1}]},
            r"^x\['k'\]\[0\]: expected a dict .*: 'a' is missing",
        ),
    ],
)
def test_wrong_structures(tree: Any, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        both_ways(tree, value)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "[2, {}]", "[1, 3]", "[1, {}]", '[1, {"type": "x"}]'),
        json.dumps([1, node("builtins.dict", '["a"]')]),
        json.dumps([1, node("builtins.dict", '["a", "a"]', LEAF, LEAF)]),
        json.dumps([1, node("builtins.dict", "null", LEAF)]),
        json.dumps([1, node("collections.defaultdict", "null", LEAF)]),
        json.dumps([1, node("builtins.dict", '[{"no": 1}]', LEAF)]),
        "[1, " + '{"type": "builtins.list", "context": "null", "children_spec": [' * 9000,
    ],
)
def test_unreadable_text(text: str) -> None:
    with pytest.raises(LoadError, match="container spec cannot be read"):
        pytree.parse(text)
