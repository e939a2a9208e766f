# SPDX-License-Identifier: BSD-3-Clause
"""Programs on the runtime: containers, aliases, numbers, several methods, constant methods."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import etx_runtime
import numpy as np
import pytest
import torch
from etx_exir import to_edge
from etx_exir.emit import EmitError
from on_device import agree, assert_same, export, lowered, on_device
from torch import nn

A, B = torch.tensor([1.0, 2]), torch.tensor([3.0, 4])

NESTED = {
    "keys of each type": (
        lambda d: {
            None: d[3] + 1,
            1: d["a"] * 2,
            2.5: d[3],
            "z": d[3],
            "a": d[3],
        },
        ({3: A, "a": B},),
    ),
    "stored order": (lambda d: {"z": d["z"] + 1, "a": d["a"] * 2}, ({"z": A, "a": B},)),
    "ordered": (
        lambda d: OrderedDict(z=d["z"] + 1, a=[d["a"]]),
        (OrderedDict(z=A, a=B),),
    ),
    "deep": (
        lambda xs, d: [[xs[0] + 1], (xs[1], {"a": [d["k"][0] * 2, ()]}), [], {}],
        ([A, B], {"k": (A,), "empty": {}}),
    ),
    "default": (
        lambda d: defaultdict(list, {"z": d[1] + 1, "a": [d["a"]]}),
        (defaultdict(int, {1: A, "a": B}),),
    ),
    "deque": (lambda d: (deque([d[0] + 1], maxlen=3), deque([d[1]])), (deque([A, B], maxlen=2),)),
    "none": (lambda d: (None, d["x"] + 1, {"n": None}), ({"x": A, "n": None},)),
    "nothing": (lambda x: None, (A,)),
}


@pytest.mark.parametrize("name", NESTED)
def test_containers(name):
    function, inputs = NESTED[name]
    agree(function, inputs, inputs)


Pair = namedtuple("Pair", "first second")


@dataclass
class Point:
    x: torch.Tensor
    y: torch.Tensor
    z: torch.Tensor | None = None


torch.export.register_dataclass(Point, serialized_type_name="test_device_programs.Point")


def swapped(pair, point):
    return Pair(pair.second, point.x + 1), Point(point.y, pair.first), point.x.shape


def test_classes_by_position_or_as_registered():
    inputs = Pair(A, B), Point(B, A)
    program = lowered(swapped, inputs).buffer
    pair, point, size = etx_runtime.load(program)(*on_device(inputs))
    assert_same((pair, point, size), ((B, B + 1), (A, A), (2,)))
    assert type(pair) is type(point) is tuple
    etx_runtime.register_container(Pair)
    etx_runtime.register_container(Point, name="test_device_programs.Point")
    pair, point, _ = etx_runtime.load(program)(*on_device(inputs))
    assert_same(tuple(pair), (B, B + 1))
    assert (type(pair), type(point), point.z) == (Pair, Point, None)
    assert_same((point.x, point.y), (A, A))


def test_keyword_arguments():
    class Keywords(nn.Module):
        def forward(self, x, *, y, z):
            return x + y[0] - z["k"]

    kwargs = {"y": [B], "z": {"k": A}}
    model = etx_runtime.load(lowered(Keywords(), (A,), kwargs).buffer)
    got = model(A.numpy(), z=on_device(kwargs["z"]), y=on_device(kwargs["y"]))
    assert_same(got, Keywords()(A, **kwargs))


class Passed(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[5.0, 6]]))

    def forward(self, x, y):
        total = x + y
        views = total, total.view(2, 1), total[1:], total
        return views, x, x.view(1, 2), y, x, self.weight, self.weight.view(2), 7, torch.ones(2)


def test_outputs_that_are_inputs_constants_or_each_other():
    agree(Passed(), (A, B), (B, A))


class Changed(nn.Module):
    def forward(self, x):
        before = x * 1
        x.mul_(2)
        return before, x, x.view(2, 1)


def test_an_input_that_is_written_to():
    agree(Changed(), (A.clone(),), (B.clone(),))


class Mode(nn.Module):
    def forward(self, x, count, factor, flag, mode, options):
        y = x * count + factor
        if flag and mode == "twice":
            y = y * options["by"]
        return y, count, factor, flag, mode


def test_python_values_as_inputs():
    inputs = (A, 3, 2.5, True, "twice", {"by": 4, "unused": None})
    manager = agree(Mode(), inputs, inputs)
    model = etx_runtime.load(manager.buffer)
    for index, other in {1: 4, 2: 2.6, 3: False, 4: "once", 5: {"by": 5, "unused": None}}.items():
        changed = [*inputs[:index], other, *inputs[index + 1 :]]
        with pytest.raises(etx_runtime.InputError, match="specialised to this value at export"):
            model(*on_device(tuple(changed)))


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.layer = nn.Linear(16, 16)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.layer(self.embed(tokens)))


class Encode(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, tokens):
        return self.layers.layer(self.layers.embed(tokens)).mean(0)


def test_methods_share_weights_and_a_tied_one_is_stored_once():
    layers = Layers()
    encode = Encode(layers)
    tokens = torch.tensor([3, 1, 4])
    manager = to_edge(
        {"forward": export(layers, (tokens,)), "encode": export(encode, (tokens,))}
    ).to_executorch()
    sizes = sorted(len(blob) for blob in manager.pte_file.constants)
    assert sizes == [16 * 4, 16 * 16 * 4, 50 * 16 * 4]
    model = etx_runtime.load(manager.buffer)
    assert model.method_names == {"forward", "encode"}
    assert_same(model(tokens.numpy()), layers(tokens))
    assert_same(model.call("encode", tokens.numpy()), encode(tokens))


VALUES = {
    "whole": 3,
    "large": -(2**63),
    "number": 2.5,
    "flag": True,
    "text": "grüße",
    "nothing": None,
    "items": [1, 2.5, "x", False, None],
    "tensor": torch.arange(6).view(2, 3),
    "scalar": torch.tensor(7.5),
    "half": torch.ones(2, dtype=torch.float16),
    "turned": torch.arange(6.0).view(2, 3).t(),
    "expanded": torch.ones(1).expand(3),
    "channels_last": torch.arange(24.0).view(1, 2, 3, 4).to(memory_format=torch.channels_last),
    "nested": {"a": [1, torch.ones(2)], 3: (True, {})},
    "empty": [],
}


def test_constant_methods():
    program = export(nn.ReLU(), (A,))
    manager = to_edge(program, constant_methods=VALUES).to_executorch()
    assert manager.config_methods == set(VALUES)
    model = etx_runtime.load(manager.buffer)
    for name, value in VALUES.items():
        assert_same(model.call(name), value, name)


@pytest.mark.parametrize("value", [object(), 2**63, 1j, b"x", np.ones(2), torch.float32])
def test_what_no_constant_method_can_return(value):
    edge = to_edge(export(nn.ReLU(), (A,)), constant_methods={"version": value})
    with pytest.raises(EmitError, match="constant method 'version'"):
        edge.to_executorch()
