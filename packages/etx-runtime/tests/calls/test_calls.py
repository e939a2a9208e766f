# SPDX-License-Identifier: BSD-3-Clause
"""Inputs and outputs: metadata, constraints, borrowed results, sources."""

from __future__ import annotations

import array
import gc
import io
import json
import mmap
from pathlib import Path
from typing import Any

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from etx_runtime import ExecutionError, InputError, LoadError, Runtime
from programs import FLOAT, Builder, addition, counter

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def symbolic(rows: list[dict[str, Any]], guards: list[str] | None = None) -> etx_runtime.Method:
    """Inputs are a number for each row with a value, else a vector; all are outputs."""
    b = Builder()
    for row in rows:
        if "value" in row:
            index = b.input(b.int(0))
            b.call("executorch_prim::add.Scalar", index, index, b.int(0))
            b.output(index)
        else:
            b.output(b.input(b.tensor((100,), dynamic=True)))
    entry: dict[str, Any] = {"inputs": [{"name": f"in{i}", **row} for i, row in enumerate(rows)]}
    if guards is not None:
        entry["guards"] = guards
    b.named["etx/constraints"] = es.NamedBlob(json.dumps({"forward": entry}).encode())
    return Runtime.get().load_program(b.serialize()).load_method("forward")


def dim(symbol: str, **bounds: Any) -> dict[str, Any]:
    return {"dims": [{"symbol": symbol, "divisor": 1, "min": 0, "max": None, **bounds}]}


def number(symbol: str, **bounds: Any) -> dict[str, Any]:
    return {"value": {"symbol": symbol, "divisor": 1, "min": None, "max": None, **bounds}}


def closed(file: Any) -> Any:
    file.close()
    return file


def vector(size: int) -> Any:
    return np.zeros(size, np.float32)


def test_values_of_numbers(runtime: Runtime) -> None:
    method = symbolic([number("n", min=2, max=9), dim("n"), number("m", expr="2*n", divisor=2)])
    assert method.execute([3, vector(3), 6])[0] == 3
    for given, message in [
        ([1, vector(1), 2], r"input 0 \('in0'\): the value is 1, but must be at least 2$"),
        ([10, vector(10), 20], r"'in0'\): the value is 10, but must be at most 9"),
        ([3, vector(4), 6], r"'in1'\): dimension 0 is 4, but must equal the value of input 0"),
        ([3, vector(3), 8], r"'in2'\): the value is 8, but must be 2 \* n = 6 with n = 3"),
        ([3, vector(3), 7], r"'in2'\): the value is 7, but must be a multiple of 2"),
    ]:
        with pytest.raises(InputError, match=message):
            method.execute(given)
    assert [str(info) for info in method.inputs] == [
        "in0: int n (>= 2, <= 9)",
        "in1: float32[n]",
        "in2: int 2 * n (a multiple of 2)",
    ]


def test_a_symbol_follows_from_an_expression(runtime: Runtime) -> None:
    method = symbolic([dim("s", expr="3*s + 1"), dim("s", expr="s - 2")])
    method.execute([vector(13), vector(2)])
    with pytest.raises(InputError, match=r"'in0'.* must be 3 \* s \+ 1 for an integer s"):
        method.execute([vector(12), vector(2)])
    with pytest.raises(InputError, match=r"'in1'.*is 3, but must be s - 2 = 2 with s = 4"):
        method.execute([vector(13), vector(3)])


def test_expressions_of_several_symbols(runtime: Runtime) -> None:
    method = symbolic([dim("a"), dim("b"), dim("a", expr="a*b//2 + a%2")])
    method.execute([vector(3), vector(4), vector(7)])
    with pytest.raises(InputError, match=r"a \* b // 2 \+ a % 2 = 7 with a = 3, b = 4"):
        method.execute([vector(3), vector(4), vector(8)])
    divided = symbolic([dim("a"), dim("a", expr="4//a")])
    divided.execute([vector(0), vector(9)])


def test_guards(runtime: Runtime) -> None:
    method = symbolic([dim("a"), dim("b")], ["a > b", "a % 2 != 0", "unknown < 3", "import os"])
    method.execute([vector(5), vector(4)])
    with pytest.raises(InputError, match=r"a > b, but a = 3 \(dimension 0 of input 0 \('in0'\)\)"):
        method.execute([vector(3), vector(4)])
    with pytest.raises(InputError, match=r"must satisfy a % 2 != 0, but a = 4") as caught:
        method.execute([vector(4), vector(1)])
    assert caught.value.index == 0


@pytest.mark.parametrize(
    "expr", ["a**9**9", "a.__class__", "f(a)", "[a][0]", "a if a else a", "1.5*a", "a)", "a" * 3000]
)
def test_other_syntax_is_ignored(runtime: Runtime, expr: str) -> None:
    symbolic([dim("a"), dim("a", expr=expr)]).execute([vector(3), vector(5)])


def test_constraints_hold_for_any_array(runtime: Runtime) -> None:
    method = symbolic([dim("a", min=2)])
    with pytest.raises(InputError, match="must be at least 2"):
        method.execute([memoryview(array.array("f", [1]))])
    with pytest.raises(InputError, match="must be at least 2"):
        method.profile([vector(1)])


def test_inputs_and_outputs(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((4, 3), dynamic=True))
    flag = b.input(b.bool(True))
    out = b.tensor((4, 3), dynamic=True)
    b.add(x, x, out)
    b.output(out, b.int(7))
    row = {"symbol": "s0", "min": 2, "max": 4, "divisor": 2}
    b.constraints(["x['a']", "flag"], [[row, None], []])
    tree = {"type": None, "context": None, "children_spec": []}
    result = {"type": "builtins.dict", "context": '["y", "n"]', "children_spec": [tree, tree]}
    b.plan.container_meta_type = es.ContainerMetadata(
        encoded_inp_str="", encoded_out_str=json.dumps([1, result])
    )
    program = runtime.load_program(b.serialize())
    first, second = program.inputs()
    assert (first.name, first.kind, first.dtype) == ("x['a']", "tensor", "float32")
    assert (first.shape, first.is_dynamic, first.nbytes) == ((4, 3), True, 48)
    assert first.bounds[1] is None
    assert (first.bounds[0].min, first.bounds[0].max, first.bounds[0].divisor) == (2, 4, 2)
    assert str(first) == "x['a']: float32[s0 (>= 2, <= 4, a multiple of 2), 3]"
    assert str(second) == "flag: bool"
    assert [str(info) for info in program.outputs()] == [
        "output['y']: float32[<=4, <=3]",
        "output['n']: int",
    ]
    method = program.load_method("forward")
    assert (method.inputs, method.outputs) == (program.inputs(), program.outputs())
    assert flag == 1


def test_required_bytes_before_the_load(runtime: Runtime) -> None:
    b = Builder()
    b.plan.non_const_buffer_sizes = [0, 0, 4096]
    x = b.input(b.tensor((4,)))
    b.output(x)
    program = runtime.load_program(b.serialize())
    needed = program.required_bytes()
    assert needed.planned == (16, 4096)
    assert needed.total == needed.method + 4112
    used = program.load_method("forward").memory_bytes()
    assert used["planned"] == 4112
    assert used["method"] <= needed.method
    with pytest.raises(etx_runtime.MetadataError):
        program.required_bytes("other")


@pytest.mark.parametrize("memory", ["planned", "unbound"])
def test_borrowed_outputs(runtime: Runtime, memory: str) -> None:
    method = runtime.load_program(addition(memory=memory)).load_method("forward")
    (first,) = method.execute([X, X], borrow=True)
    np.testing.assert_array_equal(first, X * 2)
    assert not first.flags.writeable
    (second,) = method.execute([X + 1, X], borrow=True)
    assert np.shares_memory(first, second)
    np.testing.assert_array_equal(first, X * 2 + 1)
    (owned,) = method.execute([X, X])
    assert owned.flags.writeable
    assert not np.shares_memory(owned, second)
    (again,) = method.execute([second, second], borrow=True)
    np.testing.assert_array_equal(again, X * 4)
    del method, first, second
    gc.collect()
    np.testing.assert_array_equal(again, X * 4)


def test_what_the_method_does_not_own_is_copied(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((6,), memory="unbound"))
    constant = b.tensor((2,), memory="constant", data=bytes(8))
    b.output(x, constant)
    method = runtime.load_program(b.serialize()).load_method("forward")
    given = np.ones(6, np.float32)
    through, stored = method.execute([given], borrow=True)
    assert not np.shares_memory(through, given)
    assert through.flags.writeable
    np.testing.assert_array_equal(stored, [0, 0])


def test_borrowed_layouts(runtime: Runtime) -> None:
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    data = addition((1, 2, 3, 4), order=(0, 2, 3, 1))
    (y,) = runtime.load_program(data).load_method("forward").execute([x, x], borrow=True)
    np.testing.assert_array_equal(y, x * 2)
    assert y.strides == (96, 4, 32, 8)
    model = etx_runtime.load(data, borrow=True)
    assert np.shares_memory(model(x, x), model(x, x))


def test_flat_caller(runtime: Runtime) -> None:
    call = runtime.load_program(addition()).load_method("forward").flat_caller()
    np.testing.assert_array_equal(call(X, X), X * 2)
    gc.collect()
    with pytest.raises(InputError, match="takes 2 inputs, got 1"):
        call(X)
    with pytest.raises(InputError, match="no keyword"):
        call(X, y=X)
    both = runtime.load_program(swap()).load_method("forward").flat_caller()
    assert [value.shape for value in both(X[0], X[0])] == [(3,), (3,)]


def swap() -> bytes:
    b = Builder()
    x, y = b.input(b.tensor((3,))), b.input(b.tensor((3,)))
    b.output(y, x)
    return b.serialize()


def test_layouts_numpy_alone_reads(runtime: Runtime) -> None:
    add = runtime.load_program(addition()).load_method("forward")
    records = np.zeros((2, 3), [("a", np.int8), ("b", np.float32)])
    records["b"] = X
    np.testing.assert_array_equal(add.execute([records["b"], X])[0], X * 2)
    np.testing.assert_array_equal(add.execute([X.astype(">f4"), X])[0], X * 2)
    with pytest.raises(InputError, match="more than 16 dimensions"):
        add.execute([np.zeros((1,) * 17, np.float32), X])
    scalar = runtime.load_program(addition((), memory="unbound")).load_method("forward")
    assert scalar.execute([2, 0.5])[0] == 2.5


def test_temporaries_of_dlpack_live_long_enough(runtime: Runtime) -> None:
    class Fresh:
        def __dlpack__(self, **options: Any) -> Any:
            return np.full((2, 3), 3, np.float32).__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    add = runtime.load_program(addition(memory="unbound")).load_method("forward")
    for _ in range(20):
        np.testing.assert_array_equal(add.execute([Fresh(), Fresh()])[0], np.full((2, 3), 6))


def weighted() -> bytes:
    b = Builder()
    x, out = b.input(b.tensor((2,))), b.tensor((2,))
    b.add(x, b.tensor((2,), memory="external", name="w"), out)
    b.output(out)
    return b.serialize()


def weights(value: float, key: str = "w") -> bytes:
    layout = es.TensorLayout(scalar_type=FLOAT, sizes=[2], dim_order=[0])
    data = np.full(2, value, np.float32).tobytes()
    return es.serialize_ptd(es.PtdFile({key: es.NamedBlob(data, layout=layout)}))


def test_weights_are_chosen_at_load(runtime: Runtime, tmp_path: Path) -> None:
    path = tmp_path / "w.ptd"
    path.write_bytes(weights(3))
    one = np.ones(2, np.float32)
    sources = [path, str(path), weights(3), bytearray(weights(3)), io.BytesIO(weights(3))]
    for source in sources:
        assert etx_runtime.load(weighted(), data=source)(one)[0] == 4
    assert etx_runtime.load(weighted(), data=[weights(1, "v"), weights(7)])(one)[0] == 8
    first, second = (etx_runtime.load(weighted(), data=weights(v)) for v in (1, 2))
    assert (first(one)[0], second(one)[0], first(one)[0]) == (2, 3, 2)
    with pytest.raises(LoadError, match=r"two .ptd files hold the key w"):
        etx_runtime.load(weighted(), data=[weights(1), path])
    with pytest.raises(LoadError, match=r"the .ptd data in memory: it is not a .ptd"):
        etx_runtime.load(weighted(), data=b"nothing")


def test_lifetimes_of_sources(runtime: Runtime, tmp_path: Path) -> None:
    path = tmp_path / "add.pte"
    path.write_bytes(addition())
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        method = runtime.load_program(mapped).load_method("forward")
        with pytest.raises(BufferError):
            mapped.close()
    writable = bytearray(addition())
    changed = runtime.load_program(writable)
    writable[:] = bytes(len(writable))
    for run in (method, changed.load_method("forward")):
        np.testing.assert_array_equal(run.execute([X, X])[0], X * 2)
    with path.open("rb") as file:
        from_file = runtime.load_program(file).load_method("forward")
    np.testing.assert_array_equal(from_file.execute([X, X])[0], X * 2)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "path, bytes, or a binary file object, got int"),
        (io.StringIO("text"), "StringIO reads text; open the file with mode 'rb'"),
        (io.TextIOWrapper(io.BytesIO()), "TextIOWrapper reads text; open the file with mode"),
        (closed(io.BytesIO()), "BytesIO is closed; load before it is closed"),
        ("no\0path", r"no file can have this name: 'no\\x00path'"),
        (memoryview(addition())[::2], "got memoryview"),
        (b"", "shorter than 64 bytes"),
    ],
)
def test_wrong_sources(runtime: Runtime, source: Any, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        runtime.load_program(source)
    with pytest.raises(LoadError):
        runtime.load_program(counter(), data_paths=[source])


def written(shape: tuple[int, ...] = (2, 2)) -> bytes:
    """x += x, of an input in the caller's memory."""
    b = Builder()
    x = b.input(b.tensor(shape, memory="caller"))
    b.add(x, x, x)
    b.output(x)
    b.constraints(["x"], [[None, None]])
    return b.serialize()


def test_an_input_that_is_written_changes_the_array(runtime: Runtime) -> None:
    method = runtime.load_program(written()).load_method("forward")
    x = np.ones((2, 2), np.float32)
    assert method.execute([x])[0].sum() == 8
    assert x.sum() == 8
    constant = np.frombuffer(np.ones(4, np.float32).tobytes(), np.float32).reshape(2, 2)
    for refused in (constant, np.ones((2, 4), np.float32)[:, ::2], constant.T):
        with pytest.raises(ExecutionError, match=r"writes to input 0 \('x'\): give it writable"):
            method.execute([refused])
        assert refused.sum() == 4
    assert method.execute([x])[0].sum() == 16


def test_a_kernel_in_python_writes_to_the_callers_memory(runtime: Runtime) -> None:
    b = Builder()
    x, y = b.input(b.tensor((2,))), b.input(b.tensor((2,), memory="caller"))
    b.call("my::negate.out", x, y, y)
    b.output(y)

    def negate(x: Any, out: Any) -> None:
        out -= x * 2

    etx_runtime.register_kernel("my::negate.out", negate)
    try:
        method = runtime.load_program(b.serialize()).load_method("forward")
        x = np.ones(2, np.float32)
        assert method.execute([x.copy(), x])[0].tolist() == [-1, -1]
        assert x.tolist() == [-1, -1]
    finally:
        etx_runtime.unregister("my::negate.out")
