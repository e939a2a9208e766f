# SPDX-License-Identifier: BSD-3-Clause
"""Mutable buffers by name, and shared between methods."""

from __future__ import annotations

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from etx_runtime import ExecutionError, InputError, LoadError, MetadataError, Runtime
from programs import Builder, counter, left_open

ONE = np.ones(1, np.float32)
FIVE = np.float32(5).tobytes()


def test_round_trip_by_name(runtime: Runtime) -> None:
    method = runtime.load_program(counter()).load_method("forward")
    assert method.state_names == ("count",)
    method.execute([ONE])
    saved = method.get_state()
    assert saved["count"][0] == 6
    method.execute([ONE])
    assert saved["count"][0] == 6
    method.set_state(saved)
    assert method.execute([ONE])[0][0] == 7
    other = runtime.load_program(counter()).load_method("forward")
    other.set_state(method.get_state())
    assert other.execute([ONE])[0][0] == 8
    method.set_state({"count": ONE * 41})
    assert method.execute([ONE])[0][0] == 42
    method.reset_state()
    assert method.get_state()["count"][0] == 5


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ({"x": ONE}, MetadataError, "no buffer 'x' .it has: count"),
        ({"count": np.ones(2, np.float32)}, InputError, r"expected float32\[1\], got float32\[2\]"),
        ({"count": np.ones(1)}, InputError, r"buffer 'count': expected float32\[1\], got float64"),
        ({"count": "text"}, InputError, r"buffer 'count': expected an array float32\[1\]"),
    ],
)
def test_wrong_state(
    runtime: Runtime, state: dict[str, object], error: type[Exception], message: str
) -> None:
    method = runtime.load_program(counter()).load_method("forward")
    with pytest.raises(error, match=message):
        method.set_state(state)
    assert method.get_state()["count"][0] == 5


def test_nothing_is_written_where_one_does_not_fit(runtime: Runtime) -> None:
    method = runtime.load_program(pair().serialize()).load_method("write")
    with pytest.raises(InputError):
        method.set_state({"count": np.full(1, 9, np.float32), "own.write": np.ones(3, np.float32)})
    assert method.get_state()["count"][0] == 5


def shared(b: Builder, name: str, offset: int, data: bool = True) -> int:
    """A buffer in the second arena, whose initial value is the first mutable constant."""
    tensor = es.Tensor(scalar_type=es.ScalarType.FLOAT, sizes=[1], dim_order=[0])
    tensor.allocation_info = es.AllocationDetails(memory_id=2, memory_offset_low=offset)
    tensor.extra_tensor_info = es.ExtraTensorInfo(fully_qualified_name=name)
    tensor.data_buffer_idx = 1 if data else 0
    return b.value(tensor)


def pair(other_offset: int = 0) -> Builder:
    """`write` adds its input to a buffer, `read` adds its input to the same for its result."""
    read, write = Builder("read"), Builder("write")
    write.mutable.append(FIVE)
    for b, offset in ((write, 0), (read, other_offset)):
        b.plan.non_const_buffer_sizes = [0, 0, 64]
        x, out = b.input(b.tensor((1,))), b.tensor((1,))
        count = shared(b, "count", offset)
        own = shared(b, f"own.{b.plan.name}", 16 if b is write else 32)
        b.add(count, x, out)
        if b is write:
            b.call("aten::copy_", count, out, b.bool(False), count)
            b.call("aten::copy_", own, out, b.bool(False), own)
        b.output(out)
    read.mutable = write.mutable
    original = write.serialize
    write.serialize = lambda: original(read)  # type: ignore[method-assign, misc]
    return write


def test_methods_share_state(runtime: Runtime) -> None:
    model = etx_runtime.load(pair().serialize())
    assert model.call("write", ONE) == 6
    assert model.call("read", ONE) == 7
    assert model.call("write", ONE) == 7
    read, write = model.method("read"), model.method("write")
    assert read.get_state() == {"count": 7, "own.read": 5}
    assert write.get_state() == {"count": 7, "own.write": 7}
    read.set_state({"count": np.full(1, 20, np.float32)})
    assert write.get_state()["count"] == 20
    read.reset_state()
    assert write.get_state() == {"count": 5, "own.write": 5}
    assert model.call("read", ONE) == 6


def test_sharing_is_asked_for(runtime: Runtime) -> None:
    program = runtime.load_program(pair().serialize())
    write, read = program.load_method("write"), program.load_method("read")
    write.execute([ONE])
    assert read.get_state()["count"] == 5
    reader = program.load_method("read", share_state_with=[write])
    assert reader.get_state()["count"] == 6
    del write
    assert reader.execute([ONE])[0] == 7
    reader.reset_state()
    assert reader.execute([ONE])[0] == 6
    other = runtime.load_program(pair().serialize())
    with pytest.raises(LoadError, match="of the same program"):
        other.load_method("read", share_state_with=[reader])


def test_other_places_are_not_shared(runtime: Runtime) -> None:
    model = etx_runtime.load(pair(other_offset=48).serialize())
    assert model.call("write", ONE) == 6
    assert model.call("read", ONE) == 6


def test_sharing_methods_run_one_at_a_time(runtime: Runtime) -> None:
    b = pair()
    b.plan.chains[0].instructions.clear()
    b.plan.operators.clear()
    b.call("my::nested.out", b.plan.inputs[0], b.plan.outputs[0], b.plan.outputs[0])
    models: list[etx_runtime.Model] = []
    etx_runtime.register_kernel("my::nested.out", lambda x, out: models[0].call("read", x))
    try:
        models.append(etx_runtime.load(b.serialize()))
        model = models[0]
        model.method("read"), model.method("write")
        with pytest.raises(ExecutionError, match="shares its state"):
            model.call("write", ONE)
    finally:
        etx_runtime.unregister("my::nested.out")


ONES = np.ones((2, 1), np.float32)


def test_state_left_to_the_caller_is_bound(runtime: Runtime) -> None:
    method = runtime.load_program(left_open().serialize()).load_method("forward")
    assert method.state_names == ("count",)
    with pytest.raises(ExecutionError, match="buffer 'count' has no memory: the file leaves it"):
        method.execute([ONES])
    with pytest.raises(ExecutionError, match=r"buffer 'count' has no memory.*bind_state"):
        method.get_state()
    mine = np.array([[1.0], [2.0]], np.float32)
    method.bind_state({"count": mine})
    assert method.execute([ONES])[0].tolist() == [[2.0], [3.0]]
    assert mine.tolist() == [[2.0], [3.0]]
    mine[:] = 7
    assert method.get_state()["count"].tolist() == [[7.0], [7.0]]
    method.set_state({"count": np.zeros((2, 1), np.float32)})
    assert mine.tolist() == [[0.0], [0.0]]
    other = np.full((2, 1), 5, np.float32)
    method.bind_state({"count": other})
    assert method.execute([ONES])[0].tolist() == [[6.0], [6.0]]
    assert (mine.tolist(), other.tolist()) == ([[0.0], [0.0]], [[6.0], [6.0]])


def test_state_left_to_the_caller_is_set(runtime: Runtime) -> None:
    method = runtime.load_program(left_open().serialize()).load_method("forward")
    method.set_state({"count": np.array([[3.0], [4.0]], np.float32)})
    assert method.execute([ONES])[0].tolist() == [[4.0], [5.0]]
    assert method.get_state()["count"].tolist() == [[4.0], [5.0]]
    method.reset_state()
    assert method.get_state()["count"].tolist() == [[4.0], [5.0]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((2, 1)), r"expected float32\[2, 1\], got float64"),
        (np.zeros((2, 2), np.float32)[:, :1], "memory to bind must be writable"),
        (np.frombuffer(bytes(8), np.float32).reshape(2, 1), "memory to bind must be writable"),
        (3, r"got float32\[\]"),
    ],
)
def test_wrong_bindings(runtime: Runtime, given: object, message: str) -> None:
    method = runtime.load_program(left_open().serialize()).load_method("forward")
    with pytest.raises(InputError, match=message):
        method.bind_state({"count": given})
    with pytest.raises(MetadataError, match="no buffer 'x'"):
        method.bind_state({"x": given})
    with pytest.raises(ExecutionError, match="no memory"):
        method.execute([ONES])
    planned = runtime.load_program(counter()).load_method("forward")
    with pytest.raises(InputError, match="the file plans its memory, which set_state writes to"):
        planned.bind_state({"count": ONE.copy()})


def test_an_input_is_no_state(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((1,), memory="caller", name="x"))
    out = b.tensor((1,))
    b.add(x, x, out)
    b.output(out)
    method = runtime.load_program(b.serialize()).load_method("forward")
    method.execute([ONE])
    with pytest.raises(ExecutionError, match="no memory"):
        method.get_attribute("x")
    with pytest.raises(InputError, match="cannot be bound"):
        method.set_state({"x": ONE})
