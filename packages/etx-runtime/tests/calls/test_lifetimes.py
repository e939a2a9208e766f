# SPDX-License-Identifier: BSD-3-Clause
"""Callbacks that come back while something ends, and memory that is read where it overlaps.

Run by test_sanitized.py as well, where a read or write of freed memory ends the process.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from conftest import HERE
from etx_runtime import ExecutionError, LoadError, Method, Runtime
from programs import Builder

X = np.array([1, 2, 3], np.float32)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Take away what a test registered."""
    yield
    for name in ("my::op.out", "First", "Second"):
        while etx_runtime.unregister(name):
            pass


def delegate(name: str = "First") -> bytes:
    """out = First(x)."""
    b = Builder()
    x, out = b.input(b.tensor((3,))), b.tensor((3,))
    processed = es.BackendDelegateDataReference(location=es.DataLocation.SEGMENT, index=0)
    b.plan.delegates.append(es.BackendDelegate(id=name, processed=processed, compile_specs=[]))
    b.delegates.append(b"blob")
    b.instruction(es.DelegateCall(delegate_index=0, args=[x, out]))
    b.output(out)
    return b.serialize()


def operator(
    *, memory: str = "planned", dtype: es.ScalarType = es.ScalarType.FLOAT, size: int = 3
) -> bytes:
    """out = op(x)."""
    b = Builder()
    x, out = b.input(b.tensor((size,), dtype, memory=memory)), b.tensor((size,), dtype)
    b.call("my::op.out", x, out, out)
    b.output(out)
    return b.serialize()


def load(data: bytes) -> Method:
    return Runtime.get().load_program(data).load_method("forward")


class Backend:
    """Does nothing, as a base."""

    def init(self, blob: bytes, specs: object) -> object:
        return self

    def execute(self, handle: object, args: list[Any]) -> Any:
        return args[0] + 1


def test_a_backend_calls_the_method_that_is_destroyed(runtime: Runtime) -> None:
    seen: list[str] = []

    class Comes(Backend):
        method: Method

        def destroy(self, handle: object) -> None:
            for call in (
                lambda: self.method.execute([X]),
                self.method.reset_state,
                lambda: self.method.metadata,
                self.method.memory_bytes,
                self.method.cancel,
            ):
                try:
                    call()
                except ExecutionError as error:
                    seen.append(str(error))

    backend = Comes()
    etx_runtime.register_backend("First", backend)
    backend.method = load(delegate())
    backend.method.execute([X])
    assert etx_runtime.unregister("First")
    del backend
    gc.collect()
    assert len(seen) == 5
    assert all("the method is gone" in message for message in seen)


def test_a_backend_is_destroyed_while_an_exception_passes(runtime: Runtime) -> None:
    destroyed: list[object] = []

    class Ends(Backend):
        def destroy(self, handle: object) -> None:
            destroyed.append(sys.exc_info()[0])

    etx_runtime.register_backend("First", Ends())

    def fails() -> None:
        method = load(delegate())
        method.execute([X])
        raise KeyError("as it was told")

    try:
        fails()
    except KeyError as error:
        error.__traceback__ = None
    assert len(destroyed) == 1


def test_availability_takes_others_away(runtime: Runtime) -> None:
    class Second(Backend):
        def is_available(self) -> bool:
            return True

    class First(Backend):
        def is_available(self) -> bool:
            etx_runtime.unregister("Second")
            etx_runtime.unregister("First")
            gc.collect()
            return True

    etx_runtime.register_backend("Second", Second())
    etx_runtime.register_backend("First", First())
    assert runtime.backend_registry.is_available("Second")
    assert not runtime.backend_registry.is_available("First")


def test_an_exception_is_the_cause_of_its_own_error_alone(runtime: Runtime) -> None:
    class Broken(Backend):
        def is_available(self) -> bool:
            raise ValueError("from another time")

    etx_runtime.register_backend("First", Broken())
    assert not runtime.backend_registry.is_available("First")
    with pytest.raises(LoadError) as caught:
        load(operator())
    assert caught.value.__cause__ is None
    with pytest.raises(LoadError, match="from another time") as caught:
        load(delegate())
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("memory", ["planned", "unbound"])
@pytest.mark.parametrize("kind", ["big-endian", "reversed", "memoryview", "column", "field"])
def test_timed_executions_keep_their_inputs(runtime: Runtime, kind: str, memory: str) -> None:
    """What an input was converted to lives until the last execution is over."""
    x = np.arange(1000, dtype=np.float32)
    fields = np.zeros(1000, np.dtype([("before", np.uint8), ("x", np.float32)]))
    fields["x"] = x
    given = {
        "big-endian": x.astype(">f4"),
        "reversed": x[::-1].copy()[::-1],
        "memoryview": memoryview(x),
        "column": np.stack([x, x], 1)[:, 0],
        "field": fields["x"],
    }[kind]
    seen: list[bytes] = []
    etx_runtime.register_kernel("my::op.out", lambda x, out: seen.append(bytes(x)))
    method = load(operator(memory=memory, size=1000))
    method.time_executions([given], 20)
    assert seen == [x.tobytes()] * 21


@pytest.mark.parametrize("how", ["move", "view"])
def test_a_buffer_that_took_an_input_is_read_where_it_was(runtime: Runtime, how: str) -> None:
    """The program has the buffer's slot point to the caller's array, which is gone."""
    b = Builder()
    x = b.input(b.tensor((1000,), memory="unbound"))
    buffer = b.tensor((1000,), memory="caller", name="open", dynamic=how == "view")
    if how == "move":
        b.move(x, buffer)
    else:
        sizes = b.value(es.IntList(items=[b.int(-1)]))
        b.call("executorch_prim::et_view.default", x, sizes, buffer)
    b.output(x)
    method = load(b.serialize())
    kept = np.full(1000, 5, np.float32)
    method.set_state({"open": kept})
    method.execute([np.full(1000, 1, np.float32)])
    gc.collect()
    assert method.get_state()["open"].tolist() == [5] * 1000
    method.set_state({"open": kept + 1})
    assert method.get_state()["open"].tolist() == [6] * 1000
    bound = kept + 2
    method.bind_state({"open": bound})
    method.execute([np.full(1000, 1, np.float32)])
    assert method.get_state()["open"].tolist() == [7] * 1000


def test_a_kernel_returns_its_own_output_turned_around(runtime: Runtime) -> None:
    def turn(x: Any, out: Any) -> Any:
        out[:] = x
        return out[::-1]

    etx_runtime.register_kernel("my::op.out", turn)
    np.testing.assert_array_equal(load(operator()).execute([X])[0], X[::-1])


def test_a_buffer_is_set_from_its_own_memory(runtime: Runtime) -> None:
    kept: list[Any] = []
    b = Builder()
    state = b.tensor((4,), memory="caller", name="open")
    out = b.tensor((4,))
    b.call("my::op.out", state, out, out)
    b.output(out)
    etx_runtime.register_kernel("my::op.out", lambda s, out: kept.append(s))
    method = load(b.serialize())
    method.set_state({"open": np.arange(4, dtype=np.float32)})
    method.execute([])
    method.set_state({"open": kept[0][::-1]})
    assert method.get_state()["open"].tolist() == [3, 2, 1, 0]
    method.set_state({"open": kept[0]})
    assert method.get_state()["open"].tolist() == [3, 2, 1, 0]


def test_borrowed_outputs_are_the_next_inputs(runtime: Runtime) -> None:
    """Each lies where the other input goes."""
    b = Builder()
    b.plan.non_const_buffer_sizes = [0, 32]
    x, y, first, second = (b.tensor((4,)) for _ in range(4))
    for index, offset in ((x, 0), (y, 16), (first, 16), (second, 0)):
        b.plan.values[index].val.allocation_info.memory_offset_low = offset
    b.plan.non_const_buffer_sizes[1] = 32
    b.input(x), b.input(y)
    b.call("my::op.out", x, y, first, second, first, second)
    b.output(first, second)

    def swap(x: Any, y: Any, first: Any, second: Any) -> Any:
        return y.copy() + 1, x.copy() + 2

    etx_runtime.register_kernel("my::op.out", swap)
    method = load(b.serialize())
    for call in (method.execute, lambda inputs, borrow: method.flat_caller(borrow)(*inputs)):
        state = [np.arange(4, dtype=np.float32), np.arange(4, dtype=np.float32) * 10]
        expected = [value.copy() for value in state]
        for _ in range(3):
            state = call(state, borrow=True)
            expected = [expected[1] + 1, expected[0] + 2]
            np.testing.assert_array_equal(state[0], expected[0])
            np.testing.assert_array_equal(state[1], expected[1])


class Fickle:
    """A sequence, or an array, that uses the method while its input is read."""

    def __init__(self, method: Method) -> None:
        self.method = method
        self.seen: list[str] = []

    def __dlpack__(self, **options: object) -> object:
        for call in (
            lambda: self.method.execute([X]),
            lambda: self.method.set_state({"x": X}),
            self.method.reset_state,
        ):
            try:
                call()
            except etx_runtime.RuntimeFailure as error:
                self.seen.append(str(error))
        return X.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return X.__dlpack_device__()


def test_inputs_that_use_the_method(runtime: Runtime) -> None:
    etx_runtime.register_kernel("my::op.out", lambda x, out: x + 1)
    method = load(operator(memory="unbound"))
    fickle = Fickle(method)
    np.testing.assert_array_equal(method.execute([fickle])[0], X + 1)
    assert sum("executing already" in message for message in fickle.seen) >= 2


def test_dlpack_capsules_outlive_all(runtime: Runtime) -> None:
    etx_runtime.register_kernel("my::op.out", lambda x, out: np.copyto(out, x))
    method = load(operator(dtype=es.ScalarType.BFLOAT16))
    bits = np.array([1, 2, 3], np.uint16)
    output = method.execute([etx_runtime._native.from_bits(bits, "bfloat16")])[0]
    capsule = output.__dlpack__()
    del output, method
    gc.collect()

    class Holder:
        def __dlpack__(self, **options: object) -> object:
            return capsule

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    assert etx_runtime._native.to_bits(Holder()).tolist() == [1, 2, 3]


END = """
import sys, threading, time
import etx_runtime
import numpy as np
from programs import Builder, loop

started = threading.Event()

def op(x, out):
    started.set()
    time.sleep(0.05)

b = Builder()
x, out = b.input(b.tensor((1,))), b.tensor((1,))
b.call("my::op.out", x, out, out)
b.output(out)
etx_runtime.register_kernel("my::op.out", op)

def work():
    if sys.argv[1] == "kernel":
        model = etx_runtime.load(b.serialize())
        while True:
            model(np.ones(1, np.float32))
    etx_runtime.Runtime.get().load_plugin(sys.argv[2])
    method = etx_runtime.Runtime.get().load_program(loop(20_000)).load_method("forward")
    started.set()
    while True:
        method.execute([])

for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
started.wait()
time.sleep(0.1)
print("end")
"""


@pytest.mark.parametrize("what", ["kernel", "native"])
def test_the_interpreter_ends_while_threads_execute(plugin: Path, what: str) -> None:
    paths = os.pathsep.join([str(HERE), *(path for path in sys.path if path)])
    environment = {**os.environ, "PYTHONPATH": paths, "ETX_PLUGINS": "", "ETX_PLUGIN_PATHS": ""}
    command = [sys.executable, "-c", END, what, str(plugin)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
