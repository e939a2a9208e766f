# SPDX-License-Identifier: BSD-3-Clause
"""Containers of inputs and outputs as text: what `docs/program-format.md` says, key by key."""

from __future__ import annotations

import enum
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from etx_exir.emit import EmitError
from etx_exir.emit.treespec import dump_treespec
from torch.utils import _pytree as pytree

Pair = namedtuple("Pair", "first second")
Named = namedtuple("Named", "first second")
Color = enum.Enum("Color", "RED GREEN", module=__name__)


@dataclass
class Point:
    x: Any
    y: Any = None


@dataclass
class Exported:
    x: Any
    y: Any = None


class Box:
    def __init__(self, content):
        self.content = content


pytree._register_namedtuple(Named, serialized_type_name="test_treespec.Named")
pytree.register_dataclass(Point)
torch.export.register_dataclass(Exported, serialized_type_name="test_treespec.Exported")
pytree.register_pytree_node(
    Box, lambda box: ([box.content], Box), lambda items, _: Box(*items), serialized_type_name="Box"
)


def dumped(value):
    return json.loads(dump_treespec(pytree.tree_structure(value)))


NESTED = {
    "tuple": (1, (2, []), ()),
    "list": [1, [2, {}]],
    "keys of each type": {3: 1, 0: 2, None: 3, True: 4, 2.5: 5, "z": 6, "a": 7},
    "tuple as a key": {(1, "x"): 1},
    "member as a key": {Color.RED: 1, "plain": 2},
    "ordered": OrderedDict(z=1, a=[2]),
    "default": defaultdict(list, {"z": 1, 2: 3}),
    "default, member as a key": defaultdict(int, {Color.RED: 1}),
    "deque": deque([1, (2,)]),
    "deque of limited length": deque([1, 2], maxlen=3),
    "size": (torch.Size([2, 3]), None),
    "registered namedtuple": Named(1, [2]),
    "registered dataclass": Exported(1),
}


@pytest.mark.parametrize("name", NESTED)
def test_is_torchs_form_where_torch_has_one(name):
    spec = pytree.tree_structure(NESTED[name])
    assert dump_treespec(spec) == pytree.treespec_dumps(spec)


def test_factories_are_named_and_may_be_absent():
    _, node = dumped(defaultdict(None, {"k": 1}))
    assert node["context"] == {
        "default_factory_module": None,
        "default_factory_name": None,
        "dict_context": ["k"],
    }


def test_classes_that_torch_cannot_name_keep_their_fields():
    _, node = dumped(Pair(1, (2,)))
    assert (node["type"], json.loads(node["context"])) == (f"{__name__}.Pair", ["first", "second"])
    assert [child["type"] for child in node["children_spec"]] == [None, "builtins.tuple"]
    _, node = dumped(Point(1))
    assert (node["type"], json.loads(node["context"])) == (f"{__name__}.Point", [["x"], ["y"]])


def test_a_context_of_no_use_to_the_device_is_left_out():
    _, node = dumped(Box(1))
    assert (node["type"], node["context"], len(node["children_spec"])) == ("Box", "null", 1)


def test_torchs_return_types_are_tuples():
    _, node = dumped(torch.topk(torch.ones(2), 1))
    assert (node["type"], len(node["children_spec"])) == ("builtins.tuple", 2)


def test_keys_that_json_lacks_are_refused():
    for mapping in ({b"x": 1}, OrderedDict({b"x": 1}), defaultdict(int, {b"x": 1})):
        with pytest.raises(EmitError, match=r"keys that JSON cannot hold: \[b'x'\]; use strings"):
            dumped(mapping)
