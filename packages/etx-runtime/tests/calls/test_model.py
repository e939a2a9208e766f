# SPDX-License-Identifier: BSD-3-Clause
"""Nested arguments, names and shape constraints."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from etx_runtime import InputError, LoadError, Runtime, pytree
from programs import Builder

ONE = np.ones(2, np.float32)


def spec(value: Any) -> dict[str, Any]:
    """Describe a container as torch.export writes it; leaves are None."""
    if value is None:
        return {"type": None, "context": None, "children_spec": []}
    children = [spec(v) for v in (value.values() if isinstance(value, dict) else value)]
    kind = "collections.OrderedDict" if isinstance(value, OrderedDict) else type(value).__name__
    kind = kind if "." in kind else f"builtins.{kind}"
    context = json.dumps(list(value)) if isinstance(value, dict) else "null"
    return {"type": kind, "context": context, "children_spec": children}


def nested(inputs: Any, outputs: Any, names: tuple[str, ...] = ()) -> bytes:
    """A program that returns its inputs doubled, in order."""
    b = Builder()
    count = pytree.count_leaves(pytree.parse(json.dumps([1, spec(inputs)])))
    for _ in range(count):
        x = b.input(b.tensor((2,)))
        out = b.tensor((2,))
        b.add(x, x, out)
        b.output(out)
    b.plan.container_meta_type = es.ContainerMetadata(
        encoded_inp_str=json.dumps([1, spec(inputs)]),
        encoded_out_str=json.dumps([1, spec(outputs)]),
    )
    if names:
        b.constraints(names, [[None]] * count)
    return b.serialize()


def test_nested_containers(runtime: Runtime) -> None:
    inputs = ((None, {"a": None, "b": [None, None]}), {"k": None})
    outputs = {"x": (None, [None]), "y": OrderedDict(z=None, w=None), "v": None}
    data = nested(inputs, {**outputs})
    model = etx_runtime.load(data)
    result = model(ONE, {"b": [ONE * 3, ONE * 4], "a": ONE * 2}, k=ONE * 5)
    assert list(result) == ["x", "y", "v"]
    assert isinstance(result["x"], tuple)
    assert isinstance(result["x"][1], list)
    assert list(result["y"]) == ["z", "w"]
    np.testing.assert_array_equal(result["x"][0], ONE * 2)
    np.testing.assert_array_equal(result["x"][1][0], ONE * 4)
    np.testing.assert_array_equal(result["y"]["w"], ONE * 8)
    np.testing.assert_array_equal(result["v"], ONE * 10)
    flat = model.run_method("forward", [ONE] * 5)
    assert len(flat) == 5


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((ONE,), {"k": ONE}, "args: expected a tuple of 2 items, got 1 items"),
        ((ONE, ONE), {"k": ONE}, r"args\[1\]: expected a dict with the keys 'a', 'b', got ndarray"),
        ((ONE, {"a": ONE}), {"k": ONE}, r"args\[1\]: expected a dict with the keys 'a', 'b'"),
        ((ONE, {"a": ONE, "b": ONE}), {"k": ONE}, r"args\[1\]\['b'\]: expected a list of 1"),
        (
            (ONE, {"a": ONE, "b": [ONE]}),
            {},
            "kwargs: expected a dict with the keys 'k': 'k' is missing",
        ),
        ((ONE, {"a": ONE, "b": [ONE]}), {"k": ONE, "q": ONE}, "unknown argument 'q'"),
    ],
)
def test_wrong_containers(
    runtime: Runtime, args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    model = etx_runtime.load(nested(((None, {"a": None, "b": [None]}), {"k": None}), (None,) * 4))
    with pytest.raises(InputError, match=message):
        model(*args, **kwargs)


@pytest.mark.parametrize("key", ["name", "self", "args", "kwargs", "inputs", "method"])
def test_keywords_of_any_name(runtime: Runtime, key: str) -> None:
    model = etx_runtime.load(nested(((None,), {key: None}), (None, None)))
    for call in (model, model.forward, lambda *a, **k: model.call("forward", *a, **k)):
        _, doubled = call(ONE, **{key: ONE * 3})
        np.testing.assert_array_equal(doubled, ONE * 6)


def test_positional_arguments_by_name(runtime: Runtime) -> None:
    model = etx_runtime.load(nested(((None, None), {}), (None, None), names=("x", "y")))
    a, b = model(y=ONE * 2, x=ONE)
    np.testing.assert_array_equal(a, ONE * 2)
    np.testing.assert_array_equal(b, ONE * 4)
    with pytest.raises(InputError, match="unknown argument 'z'; the method takes: x, y"):
        model(ONE, z=ONE)
    with pytest.raises(InputError, match="argument 'x' is given by position and by name"):
        model(ONE, x=ONE)
    with pytest.raises(InputError, match=r"input 1 \('y'\): expected float32\[2\], got float64"):
        model(ONE, np.ones(2))
    nest = nested(((None,), {"k": None}), (None, None), names=("x", "k"))
    model = etx_runtime.load(nest)
    with pytest.raises(InputError, match=r"takes \(x, k=\), got 2 positional$"):
        model(ONE, ONE)
    with pytest.raises(InputError, match=r"takes \(x, k=\), got 0 positional; 'x' is missing$"):
        model(k=ONE)


def test_single_result_and_no_spec(runtime: Runtime) -> None:
    single = etx_runtime.load(nested(((None,), {}), None))
    np.testing.assert_array_equal(single(ONE), ONE * 2)
    b = Builder()
    x = b.input(b.tensor((2,)))
    b.output(x, x)
    result = etx_runtime.load(b.serialize())(ONE)
    assert isinstance(result, tuple)


def test_corrupt_spec(runtime: Runtime) -> None:
    b = Builder()
    b.plan.container_meta_type = es.ContainerMetadata(encoded_inp_str="[2, {}]")
    with pytest.raises(LoadError, match="container spec cannot be read"):
        etx_runtime.load(b.serialize())()


def constrained(dims: list[list[dict[str, Any] | None]], shapes: list[tuple[int, ...]]) -> Any:
    b = Builder()
    for shape in shapes:
        b.output(b.input(b.tensor(shape, dynamic=True)))
    b.constraints([f"in{i}" for i in range(len(shapes))], dims)
    return etx_runtime.load(b.serialize())


def test_constraints(runtime: Runtime) -> None:
    s0 = {"symbol": "s0", "min": 2, "max": 8, "divisor": 2}
    twice = {"symbol": "s0", "min": 4, "max": 16, "divisor": 2, "expr": "2*s0 + 1"}
    model = constrained([[s0], [None, s0], [twice]], [(8,), (3, 8), (17,)])

    def call(a: int, b: int, c: int) -> None:
        model(*(np.zeros(s, np.float32) for s in ((a,), (3, b), (c,))))

    with pytest.raises(InputError, match=r"input 0 \('in0'\): dimension 0 is 0, but must be at le"):
        call(0, 0, 1)
    with pytest.raises(InputError, match="must be a multiple of 2"):
        call(3, 3, 8)
    with pytest.raises(InputError, match="must be at most 8"):
        call(10, 10, 10)
    with pytest.raises(
        InputError, match=r"'in1'.*must equal dimension 0 of input 0 \('in0'\)"
    ) as e:
        call(4, 6, 8)
    assert e.value.index == 1


def test_fixed_dimensions_of_dynamic_inputs(runtime: Runtime) -> None:
    s0 = {"symbol": "s0", "min": 1, "max": 8, "divisor": 1}
    model = constrained([[s0, None]], [(8, 4)])
    assert str(model.method().inputs[0]) == "in0: float32[s0 (>= 1, <= 8), 4]"
    assert model(np.zeros((3, 4), np.float32)).shape == (3, 4)
    message = r"input 0 \('in0'\): dimension 1 is 2, but must be 4 \(shape given: \(8, 2\)\)"
    with pytest.raises(InputError, match=message) as e:
        model(np.zeros((8, 2), np.float32))
    assert e.value.index == 0


def test_derived_dimensions(runtime: Runtime) -> None:
    s0 = {"symbol": "s0", "min": 0, "max": 8, "divisor": 1}
    derived = {**s0, "max": 17, "expr": "2*s0 + 1"}
    model = constrained([[derived], [s0]], [(17,), (8,)])
    model(np.zeros(9, np.float32), np.zeros(4, np.float32))
    with pytest.raises(InputError, match=r"'in0'.*must be 2 \* s0 \+ 1 = 9 with s0 = 4"):
        model(np.zeros(8, np.float32), np.zeros(4, np.float32))


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"forward": 3}', b'{"forward": {"inputs": [7]}}']
)
def test_unreadable_constraints_are_ignored(runtime: Runtime, text: bytes) -> None:
    b = Builder()
    b.output(b.input(b.tensor((2,))))
    b.named["etx/constraints"] = es.NamedBlob(text)
    np.testing.assert_array_equal(etx_runtime.load(b.serialize())(ONE), ONE)
