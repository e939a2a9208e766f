# SPDX-License-Identifier: BSD-3-Clause
"""Kernels and backends written in Python."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from conftest import HERE
from etx_runtime import ExecutionError, LoadError, Method, PluginError, Runtime
from parallel import run_in_threads
from programs import Builder

X = np.array([1, 2, 3], np.float32)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Take away what a test registered."""
    yield
    for name in ("my::op.out", "my::two.out", "Doubler", "aten::add.out"):
        while etx_runtime.unregister(name):
            pass


def program(name: str = "my::op.out", dynamic: bool = False, memory: str = "planned") -> bytes:
    """out = op(x, 3)."""
    b = Builder()
    x = b.input(b.tensor((3,), dynamic=dynamic, memory=memory))
    out = b.tensor((3,), dynamic=dynamic)
    b.call(name, x, b.int(3), out, out)
    b.output(out)
    return b.serialize()


def load(data: bytes) -> Method:
    return Runtime.get().load_program(data).load_method("forward")


def test_kernel_writes_its_output(runtime: Runtime) -> None:
    seen: list[Any] = []

    def op(x: Any, n: int, out: Any) -> None:
        seen[:] = [x.flags.writeable, out.flags.writeable, n]
        np.multiply(x, n, out=out)

    etx_runtime.register_kernel("my::op.out", op)
    assert "my::op.out" in runtime.operator_registry.operator_names
    method = load(program())
    for scale in (1, 2):
        np.testing.assert_array_equal(method.execute([X * scale])[0], X * 3 * scale)
    assert seen == [False, True, 3]


@pytest.mark.parametrize("result", [X[:2] * 2, (X[:2] * 2,), memoryview(X[:2] * 2)])
def test_kernel_returns_its_output(runtime: Runtime, result: object) -> None:
    etx_runtime.register_kernel("my::op.out", lambda x, n, out: result)
    np.testing.assert_array_equal(load(program(dynamic=True)).execute([X])[0], X[:2] * 2)


@pytest.mark.parametrize("as_list", [False, True])
def test_several_outputs(runtime: Runtime, as_list: bool) -> None:
    b = Builder()
    x = b.input(b.tensor((3,)))
    low, high = b.tensor((3,)), b.tensor((3,))
    tensors = b.value(es.TensorList(items=[x, x]))
    optional = b.value(es.OptionalTensorList(items=[x, -1]))
    returns = [b.value(es.TensorList(items=[low, high]))] if as_list else [low, high]
    b.call("my::two.out", tensors, optional, b.none(), low, high, *returns)
    b.output(low, high)

    def two(tensors: list[Any], optional: list[Any], none: None, low: Any, high: Any) -> Any:
        assert (len(tensors), optional[1], none) == (2, None, None)
        return tensors[0] - 1, optional[0] + 1

    etx_runtime.register_kernel("my::two.out", two)
    low_value, high_value = load(b.serialize()).execute([X])
    np.testing.assert_array_equal(low_value, X - 1)
    np.testing.assert_array_equal(high_value, X + 1)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (X.astype(np.float64), r"float64\[3\] does not fit the output float32\[3\]"),
        (X[:2], r"float32\[2\] does not fit the output float32\[3\]"),
        ("text", "expected an array"),
        ((X, X), "returned 2 results, the operator has 1"),
    ],
)
def test_wrong_results(runtime: Runtime, result: object, message: str) -> None:
    etx_runtime.register_kernel("my::op.out", lambda *args: result)
    with pytest.raises(ExecutionError, match=message):
        load(program()).execute([X])


def test_exceptions_are_causes(runtime: Runtime) -> None:
    def op(*args: object) -> None:
        raise ValueError("no luck")

    etx_runtime.register_kernel("my::op.out", op)
    method = load(program())
    for _ in range(2):
        with pytest.raises(ExecutionError, match=r"my::op\.out failed .*ValueError: no luck") as e:
            method.execute([X])
        assert isinstance(e.value.__cause__, ValueError)
        assert (e.value.name, e.value.instruction) == ("my::op.out", 0)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("\udcff"), r"ValueError: \\udcff"),
        (ValueError("caf\u00e9"), "ValueError: caf\u00e9"),
        (ValueError("a\0b"), "ValueError: a"),
        (Unprintable(), "Unprintable"),
    ],
)
def test_exceptions_of_any_text_are_causes(runtime: Runtime, error: Exception, text: str) -> None:
    def op(*args: object) -> None:
        raise error

    etx_runtime.register_kernel("my::op.out", op)
    with pytest.raises(ExecutionError, match=rf"my::op\.out failed .*{text}") as caught:
        load(program()).execute([X])
    assert caught.value.__cause__ is error


def test_interrupts_pass(runtime: Runtime) -> None:
    def op(*args: object) -> None:
        raise KeyboardInterrupt

    etx_runtime.register_kernel("my::op.out", op)
    with pytest.raises(KeyboardInterrupt):
        load(program()).execute([X])


def test_registered_comes_first_until_taken_away(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((3,)))
    out = b.tensor((3,))
    b.add(x, x, out)
    b.output(out)
    etx_runtime.register_kernel("aten::add.out", lambda a, b, alpha, out: a * 0)
    replaced = load(b.serialize())
    assert etx_runtime.unregister("aten::add.out")
    assert not etx_runtime.unregister("aten::add.out")
    assert replaced.execute([X])[0].sum() == 0
    np.testing.assert_array_equal(load(b.serialize()).execute([X])[0], X * 2)
    with pytest.raises(PluginError, match="needs a function"):
        etx_runtime.register_kernel("my::op.out", 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("memory", ["planned", "unbound"])
def test_kept_views_outlive_the_method(runtime: Runtime, memory: str) -> None:
    kept: list[Any] = []
    etx_runtime.register_kernel("my::op.out", lambda x, n, out: kept.extend([x, out]))
    method = load(program(memory=memory))
    method.execute([X + 41])
    del method
    gc.collect()
    x, out = kept
    np.testing.assert_array_equal(x, X + 41)
    out[:] = 7
    assert out.sum() == 21
    kept.clear()


def test_a_kernel_runs_another_method(runtime: Runtime) -> None:
    inner_program = program("my::two.out")
    etx_runtime.register_kernel("my::two.out", lambda x, n, out: x + n)
    inner = load(inner_program)
    etx_runtime.register_kernel("my::op.out", lambda x, n, out: inner.execute([x])[0] * 10)
    np.testing.assert_array_equal(load(program()).execute([X])[0], (X + 3) * 10)
    outer: list[Method] = []
    etx_runtime.register_kernel("my::op.out", lambda x, n, out: outer[0].execute([x])[0])
    outer.append(load(program()))
    with pytest.raises(ExecutionError, match="executing already") as e:
        outer[0].execute([X])
    assert isinstance(e.value.__cause__, ExecutionError)


def test_threads(runtime: Runtime) -> None:
    etx_runtime.register_kernel("my::op.out", lambda x, n, out: x * n)
    data = Runtime.get().load_program(program())
    failures: list[int] = []

    def work(number: int) -> None:
        method = data.load_method("forward")
        for _ in range(100):
            if not (method.execute([X * number])[0] == X * number * 3).all():
                failures.append(number)

    run_in_threads(work)
    assert failures == []


class Doubler:
    """Multiplies by the first byte of its blob."""

    def __init__(self) -> None:
        self.destroyed: list[object] = []

    def init(self, blob: bytes, specs: etx_runtime.CompileSpecs) -> dict[str, Any]:
        if not blob:
            raise ValueError("an empty blob")
        bias = specs.named_data("bias")[0] if "bias" in specs else 0
        self.specs = specs
        return {"scale": blob[0], "bias": bias, "method": specs.method}

    def execute(self, handle: dict[str, Any], args: list[Any]) -> None:
        x, out = args
        out[:] = x * handle["scale"] + handle["bias"]

    def destroy(self, handle: object) -> None:
        self.destroyed.append(handle)


def delegate(blob: bytes, keys: tuple[str, ...] = ()) -> Builder:
    b = Builder()
    x, out = b.input(b.tensor((3,))), b.tensor((3,))
    reference = es.BackendDelegateDataReference(location=es.DataLocation.SEGMENT, index=0)
    specs = [es.CompileSpec(key=key, value=b"v") for key in keys]
    b.plan.delegates.append(
        es.BackendDelegate(id="Doubler", processed=reference, compile_specs=specs)
    )
    b.delegates.append(blob)
    b.instruction(es.DelegateCall(delegate_index=0, args=[x, out]))
    b.output(out)
    return b


def test_backend(runtime: Runtime) -> None:
    backend = Doubler()
    etx_runtime.register_backend("Doubler", backend)
    assert runtime.backend_registry.is_available("Doubler")
    method = load(delegate(b"\x02").serialize())
    np.testing.assert_array_equal(method.execute([X])[0], X * 2)
    del method
    assert backend.destroyed == [{"scale": 2, "bias": 0, "method": "forward"}]
    b = delegate(b"\x02", ("bias",))
    b.named["bias"] = es.NamedBlob(b"\x09")
    np.testing.assert_array_equal(load(b.serialize()).execute([X])[0], X * 2 + 9)
    with pytest.raises(RuntimeError, match="only be read during init"):
        backend.specs.named_data("bias")


def test_backend_that_returns(runtime: Runtime) -> None:
    class Returns(Doubler):
        def execute(self, handle: dict[str, Any], args: list[Any]) -> Any:
            return args[0] + 1

    etx_runtime.register_backend("Doubler", Returns())
    np.testing.assert_array_equal(load(delegate(b"\x02").serialize()).execute([X])[0], X + 1)


def test_backend_errors(runtime: Runtime) -> None:
    class Fails(Doubler):
        def execute(self, handle: dict[str, Any], args: list[Any]) -> None:
            raise RuntimeError("broken")

    class Absent(Doubler):
        def is_available(self) -> bool:
            return False

    etx_runtime.register_backend("Doubler", Fails())
    with pytest.raises(LoadError, match=r"Doubler: .*ValueError: an empty blob") as load_error:
        load(delegate(b"").serialize())
    assert isinstance(load_error.value.__cause__, ValueError)
    with pytest.raises(LoadError, match="KeyError") as missing:
        load(delegate(b"\x01", ("bias",)).serialize())
    assert isinstance(missing.value.__cause__, KeyError)
    method = load(delegate(b"\x02").serialize())
    with pytest.raises(ExecutionError, match=r"Doubler failed .*RuntimeError: broken") as e:
        method.execute([X])
    assert isinstance(e.value.__cause__, RuntimeError)
    etx_runtime.register_backend("Doubler", Absent())
    assert not runtime.backend_registry.is_available("Doubler")
    with pytest.raises(LoadError, match="not available"):
        load(delegate(b"\x02").serialize())
    with pytest.raises(PluginError, match="init and execute"):
        etx_runtime.register_backend("Doubler", object())  # type: ignore[arg-type]


def test_a_method_frees_its_handle(runtime: Runtime) -> None:
    class Handle:
        pass

    class Keeps(Doubler):
        def init(self, blob: bytes, specs: etx_runtime.CompileSpecs) -> Any:
            handle = Handle()
            self.reference = weakref.ref(handle)
            return handle

    backend = Keeps()
    backend.destroy = None  # type: ignore[method-assign, assignment]
    del backend.destroy
    etx_runtime.register_backend("Doubler", backend)
    method = load(delegate(b"\x02").serialize())
    assert backend.reference() is not None
    del method
    backend.destroyed.clear()
    assert backend.reference() is None


KEEPER = """
import sys
import etx_runtime
import numpy as np
from programs import Builder

b = Builder()
x, out = b.input(b.tensor((1,))), b.tensor((1,))
b.call("my::keep.out", x, out, out)
b.output(out)
kept = []


def keep(x, out):
    kept.append((x, out))
    out[:] = x


etx_runtime.register_kernel("my::keep.out", keep)
model = etx_runtime.load(b.serialize(), borrow=True)
kept.append(model(np.ones(1, np.float32)))
keep.model = model
print(kept[0])
"""


def test_kept_views_leave_nothing_behind() -> None:
    """NumPy's arrays hide what they keep from the garbage collector; nanobind tells at exit."""
    paths = os.pathsep.join([str(HERE), *(path for path in sys.path if path)])
    environment = {**os.environ, "PYTHONPATH": paths, "ETX_PLUGINS": "", "ETX_PLUGIN_PATHS": ""}
    command = [sys.executable, "-c", KEEPER]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.startswith("(array([1.]")
    assert done.stderr == ""
