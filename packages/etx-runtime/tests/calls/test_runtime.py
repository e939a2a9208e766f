# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import io
import sys
from pathlib import Path

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from etx_runtime import Runtime, Verification
from etx_schema._generated.program import IDENTIFIER
from etx_schema.encoder import Encoder
from parallel import run_in_threads
from programs import BOOL, FLOAT, LONG, Builder, addition, counter, loop

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def method(runtime: Runtime, data: bytes, name: str = "forward") -> etx_runtime.Method:
    return runtime.load_program(data).load_method(name)


@pytest.mark.parametrize("memory", ["planned", "unbound"])
def test_adds(runtime: Runtime, memory: str) -> None:
    add = method(runtime, addition(memory=memory))
    for scale in (1, 2):
        (y,) = add.execute([X * scale, X])
        np.testing.assert_array_equal(y, X * (scale + 1))
    first = add.execute([X, X])[0]
    add.execute([X + 1, X])
    np.testing.assert_array_equal(first, X * 2)


@pytest.mark.parametrize("memory", ["planned", "unbound"])
@pytest.mark.parametrize(
    "given",
    [
        np.asfortranarray(X),
        np.repeat(X, 2, axis=1)[:, ::2],
        X[::-1][::-1],
        np.concatenate([X, X])[1::2][:, ::-1],
    ],
)
def test_any_strides(runtime: Runtime, memory: str, given: np.ndarray) -> None:
    (y,) = method(runtime, addition(memory=memory)).execute([given, X])
    np.testing.assert_array_equal(y, given + X)


def test_unaligned_array(runtime: Runtime) -> None:
    raw = np.zeros(25, np.uint8)
    given = raw[1:].view(np.float32).reshape(2, 3)
    given[:] = X
    (y,) = method(runtime, addition(memory="unbound")).execute([given, X])
    np.testing.assert_array_equal(y, X * 2)


def test_read_only_array_and_buffer(runtime: Runtime) -> None:
    frozen = X.copy()
    frozen.flags.writeable = False
    view = memoryview(X.tobytes()).cast("f", (2, 3))
    (y,) = method(runtime, addition()).execute([frozen, view])
    np.testing.assert_array_equal(y, X * 2)


class Dlpack:
    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_dlpack(runtime: Runtime) -> None:
    (y,) = method(runtime, addition()).execute([Dlpack(X.copy()), X])
    np.testing.assert_array_equal(y, X * 2)


def test_channels_last(runtime: Runtime) -> None:
    x = np.random.default_rng(0).standard_normal((1, 2, 3, 4)).astype(np.float32)
    add = method(runtime, addition((1, 2, 3, 4), order=(0, 2, 3, 1)))
    (y,) = add.execute([x, np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)])
    np.testing.assert_array_equal(y, x * 2)
    assert y.strides == (96, 4, 32, 8)


def test_sources(runtime: Runtime, tmp_path: Path) -> None:
    data = addition()
    path = tmp_path / "add.pte"
    path.write_bytes(data)
    unaligned = memoryview(b"x" + data)[1:]
    sources = [
        path,
        str(path),
        data,
        bytearray(data),
        memoryview(data),
        unaligned,
        io.BytesIO(data),
    ]
    for source in sources:
        program = runtime.load_program(source)
        assert program.method_names == {"forward"}
        np.testing.assert_array_equal(program.load_method("forward")([X, X])[0], X * 2)
    minimal = runtime.load_program(data, verification=Verification.Minimal)
    np.testing.assert_array_equal(minimal.load_method("forward")([X, X])[0], X * 2)


def test_metadata(runtime: Runtime) -> None:
    meta = runtime.load_program(counter()).method_meta("forward")
    assert (meta.name(), meta.num_inputs(), meta.num_outputs()) == ("forward", 1, 1)
    info = meta.input_tensor_meta(0)
    assert (info.sizes(), info.dtype(), info.dtype_name(), info.nbytes()) == ((1,), 6, "float32", 4)
    assert info.is_memory_planned()
    assert not info.is_dynamic()
    assert meta.num_attributes() == 1
    assert meta.attribute_tensor_meta(0).name() == "count"
    assert meta.operator_names() == ["aten::add.out", "aten::copy_"]
    assert meta.num_instructions() == 2
    assert meta.memory_planned_buffer_sizes() == [36]
    with pytest.raises(etx_runtime.MetadataError):
        meta.input_tensor_meta(1)
    loaded = runtime.load_program(counter()).load_method("forward")
    memory = loaded.memory_bytes()
    assert memory["planned"] == 36
    assert memory["method"] <= meta.required_bytes()


def test_state_starts_as_stored(runtime: Runtime) -> None:
    count = method(runtime, counter())
    one = np.ones(1, np.float32)
    assert [float(count.execute([one])[0][0]) for _ in range(3)] == [6, 7, 8]
    assert count.get_attribute("count")[0] == 8
    count.reset_state()
    assert count.execute([one])[0][0] == 6
    assert method(runtime, counter()).execute([one])[0][0] == 6
    with pytest.raises(etx_runtime.MetadataError, match="no buffer"):
        count.get_attribute("other")


def test_state_without_values_is_zero(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((2,)))
    state, out = b.tensor((2,)), b.tensor((2,))
    b.add(state, x, out)
    b.output(out)
    (y,) = method(runtime, b.serialize()).execute([np.ones(2, np.float32)])
    np.testing.assert_array_equal(y, [1, 1])


def test_loop_and_budget(runtime: Runtime) -> None:
    assert method(runtime, loop(1000)).execute([]) == [1000]
    endless = method(runtime, loop(2**62))
    endless.set_instruction_budget(10_000)
    with pytest.raises(etx_runtime.ExecutionError, match="budget"):
        endless.execute([])


@pytest.mark.parametrize("flag", [True, False])
def test_cond_moves_handles(runtime: Runtime, flag: bool) -> None:
    b = Builder()
    pred = b.input(b.tensor((), BOOL))
    x = b.input(b.tensor((3,)))
    twice, thrice, result = b.tensor((3,)), b.tensor((3,)), b.tensor((3,), memory="unbound")
    b.jump_false(pred, 4)
    b.add(x, x, twice)
    b.move(twice, result)
    b.jump_false(b.bool(False), 7)
    b.add(x, x, thrice)
    b.add(thrice, x, thrice)
    b.move(thrice, result)
    b.output(result)
    ones = np.ones(3, np.float32)
    (y,) = method(runtime, b.serialize()).execute([np.array(flag), ones])
    np.testing.assert_array_equal(y, ones * (2 if flag else 3))


def test_dynamic_shapes_and_views(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((4, 6), dynamic=True))
    n, minus = b.int(0), b.int(-1)
    doubled = b.tensor((4, 6), dynamic=True)
    flat = b.tensor((24,), memory="unbound", dynamic=True)
    size = b.value(es.IntList(items=[minus]))
    shape = b.value(es.IntList(items=[n]))
    filled = b.tensor((6,), dynamic=True)
    b.add(x, x, doubled)
    b.call("executorch_prim::et_view.default", doubled, size, flat)
    b.call("aten::sym_size.int", x, b.int(1), n)
    b.call("aten::full.out", shape, b.int(7), filled, filled)
    b.output(flat, filled, n)
    run = method(runtime, b.serialize())
    for rows, columns in [(4, 6), (1, 2), (3, 5), (0, 3)]:
        x_value = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        y, full, size_value = run.execute([x_value])
        np.testing.assert_array_equal(y, x_value.ravel() * 2)
        np.testing.assert_array_equal(full, [7] * columns)
        assert size_value == columns
    with pytest.raises(etx_runtime.InputError, match=r"expected float32\[<=4, <=6\]"):
        run.execute([np.zeros((1, 7), np.float32)])


def test_lists_temp_memory_and_constants(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((2,)))
    constant = b.tensor((2,), memory="constant", data=np.array([3, 4], np.float32).tobytes())
    out = b.tensor((2,))
    tensors = b.value(es.TensorList(items=[x, constant, x]))
    b.call("aten::cat.out", tensors, b.int(0), out, out)
    b.output(out, constant)
    run = method(runtime, b.serialize())
    y, c = run.execute([np.array([1, 2], np.float32)])
    np.testing.assert_array_equal(y, [5, 8])
    np.testing.assert_array_equal(c, [3, 4])
    assert run.memory_bytes()["temp"] >= 8


def test_legacy_constant_buffer(runtime: Runtime) -> None:
    b = Builder()
    constant = b.tensor((2,), memory="constant", data=b"")
    b.output(constant)
    program = b.pte().program
    storage = np.array([1, 2], np.float32).tobytes()
    program.constant_buffer = [es.Buffer(storage=b""), es.Buffer(storage=storage)]
    (y,) = method(runtime, Encoder(by_size=False).encode(program, IDENTIFIER)).execute([])
    np.testing.assert_array_equal(y, [1, 2])


def test_constant_method(runtime: Runtime) -> None:
    b = Builder("constants")
    b.plan.non_const_buffer_sizes = [0]
    text = b.value(es.String(string_val="höi"))
    numbers = b.value(es.IntList(items=[b.int(3), b.int(-4)]))
    floats = b.value(es.DoubleList(items=[0.5]))
    flags = b.value(es.BoolList(items=[True, False]))
    b.output(text, numbers, floats, flags, b.int(9), b.none(), b.value(es.Double(double_val=2.5)))
    program = runtime.load_program(b.serialize(Builder("other")))
    assert program.method_names == {"constants", "other"}
    values = program.load_method("constants").execute([])
    assert values == ["höi", [3, -4], [0.5], [True, False], 9, None, 2.5]


def test_specialised_inputs(runtime: Runtime) -> None:
    b = Builder()
    for member in (es.Int(int_val=3), es.Bool(bool_val=True), es.Double(double_val=0.5)):
        b.input(b.value(member))
    b.input(b.value(es.String(string_val="mode")))
    b.input(b.none())
    b.output(0)
    run = method(runtime, b.serialize())
    assert run.execute([3, True, 0.5, "mode", None]) == [3]
    assert [run.input_value(i) for i in range(5)] == [3, True, 0.5, "mode", None]
    run.execute([np.int64(3), True, 0.50001, "mode", None])
    good = [3, True, 0.5, "mode", None]
    for index, bad in enumerate([4, False, 0.6, "other", 1]):
        with pytest.raises(etx_runtime.InputError, match="specialised") as caught:
            run.execute([*good[:index], bad, *good[index + 1 :]])
        assert caught.value.index == index


def test_numbers_that_the_program_reads_are_set(runtime: Runtime) -> None:
    """``n, x -> n + 1, full((n, 2), x)``; the list of sizes is read at each call."""
    b = Builder()
    n = b.input(b.int(3))
    x = b.input(b.value(es.Double(double_val=0.5)))
    count, out = b.int(0), b.tensor((5, 2), dynamic=True)
    b.call("executorch_prim::add.Scalar", n, b.int(1), count)
    b.call("aten::full.out", b.value(es.IntList(items=[n, b.int(2)])), x, out, out)
    b.output(count, out)
    run = method(runtime, b.serialize())
    for size, number in ((3, 0.5), (5, 2), (np.int64(0), -1.5), (3, 0.5)):
        total, filled = run.execute([size, number])
        assert total == size + 1
        np.testing.assert_array_equal(filled, np.full((size, 2), number, np.float32))
    for bad in (True, 2.5, "3", None, np.ones(2), [3], 2**70):
        with pytest.raises(etx_runtime.InputError, match=r"input 0: expected .*, got") as caught:
            run.execute([bad, 0.5])
        assert caught.value.index == 0


def test_numbers_for_0d_tensors(runtime: Runtime) -> None:
    add = method(runtime, addition(()))
    assert add.execute([2, np.float32(0.5)])[0] == np.float32(2.5)
    with pytest.raises(etx_runtime.InputError, match="got float"):
        method(runtime, addition((), dtype=LONG)).execute([0.5, 1])


def test_bfloat16_comes_as_dlpack(runtime: Runtime) -> None:
    b = Builder()
    bits = np.array([0x3F80, 0x4000], np.uint16)
    constant = b.tensor((2,), es.ScalarType.BFLOAT16, memory="constant", data=bits.tobytes())
    b.output(constant)
    (y,) = method(runtime, b.serialize()).execute([])
    assert y.__dlpack_device__() == (1, 0)
    assert not isinstance(y, np.ndarray)


def test_external_weights(runtime: Runtime, tmp_path: Path) -> None:
    b = Builder()
    x = b.input(b.tensor((2,)))
    weight = b.tensor((2,), memory="external", name="layer.weight")
    out = b.tensor((2,))
    b.add(x, weight, out)
    b.output(out)
    layout = es.TensorLayout(scalar_type=FLOAT, sizes=[2], dim_order=[0])
    data = np.array([10, 20], np.float32).tobytes()
    path = tmp_path / "weights.ptd"
    es.write_ptd(es.PtdFile({"layer.weight": es.NamedBlob(data, layout=layout)}), path)
    program = runtime.load_program(b.serialize(), data_paths=[path])
    (y,) = program.load_method("forward").execute([np.ones(2, np.float32)])
    np.testing.assert_array_equal(y, [11, 21])
    with pytest.raises(
        etx_runtime.LoadError, match=r"layer\.weight: .*\.ptd file that was not given"
    ):
        method(runtime, b.serialize())
    layout.sizes = [3]
    es.write_ptd(es.PtdFile({"layer.weight": es.NamedBlob(data * 2, layout=layout)}), path)
    with pytest.raises(etx_runtime.LoadError, match="differs in dtype, shape or layout"):
        runtime.load_program(b.serialize(), data_paths=[path]).load_method("forward")
    meta = program.metadata("forward")
    assert meta.num_external_tensors() == 1
    assert meta.external_tensor_meta(0).sizes() == (2,)
    with pytest.raises(etx_runtime.MetadataError, match="no such tensor"):
        meta.external_tensor_meta(1)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(etx_runtime.LoadError, match="truncated"):
        runtime.load_program(b.serialize(), data_paths=[path])


def test_a_missing_weight_shows_at_load(tmp_path: Path) -> None:
    b = Builder()
    b.output(b.tensor((2,), memory="external", name="layer.weight"))
    with pytest.raises(etx_runtime.LoadError, match=r"layer\.weight: .*that was not given"):
        etx_runtime.load(b.serialize())
    layout = es.TensorLayout(scalar_type=FLOAT, sizes=[2], dim_order=[0])
    other = tmp_path / "other.ptd"
    es.write_ptd(es.PtdFile({"other": es.NamedBlob(bytes(8), layout=layout)}), other)
    with pytest.raises(etx_runtime.LoadError, match=r"layer\.weight: .*no such tensor"):
        etx_runtime.load(b.serialize(), data=other)
    es.write_ptd(es.PtdFile({"layer.weight": es.NamedBlob(bytes(8), layout=layout)}), other)
    np.testing.assert_array_equal(etx_runtime.load(b.serialize(), data=other)(), [0, 0])


def delegate(specs: list[es.CompileSpec], blob: bytes, backend: str = "AddByte") -> Builder:
    b = Builder()
    x = b.input(b.tensor((2,)))
    out = b.tensor((2,))
    reference = es.BackendDelegateDataReference(location=es.DataLocation.SEGMENT, index=0)
    b.plan.delegates.append(
        es.BackendDelegate(id=backend, processed=reference, compile_specs=specs)
    )
    b.delegates.append(blob)
    b.instruction(es.DelegateCall(delegate_index=0, args=[x, out]))
    b.output(out)
    return b


def test_delegate(runtime: Runtime) -> None:
    ones = np.ones(2, np.float32)
    assert runtime.backend_registry.registered_backend_names == ["AddByte"]
    assert runtime.backend_registry.is_available("AddByte")
    (y,) = method(runtime, delegate([], b"\x05").serialize()).execute([ones])
    np.testing.assert_array_equal(y, [6, 6])
    named = delegate([es.CompileSpec(key="bias", value=b"")], b"\x05")
    with pytest.raises(etx_runtime.LoadError, match="AddByte: there is no bias"):
        method(runtime, named.serialize())
    named.named["bias"] = es.NamedBlob(b"\x09")
    (y,) = method(runtime, named.serialize()).execute([ones])
    np.testing.assert_array_equal(y, [10, 10])
    with pytest.raises(etx_runtime.LoadError, match="Elsewhere: no backend of this name"):
        method(runtime, delegate([], b"\x05", "Elsewhere").serialize())


def test_profile(runtime: Runtime) -> None:
    outputs, events = method(runtime, counter()).profile([np.ones(1, np.float32)])
    assert outputs[0][0] == 6
    assert [(index, name) for index, name, _ in events] == [
        (0, "aten::add.out"),
        (1, "aten::copy_"),
    ]
    assert len(method(runtime, addition()).time_executions([X, X], 5)) == 5


def test_threads_share_a_program(runtime: Runtime) -> None:
    program = runtime.load_program(addition((64, 64)))
    failures = []

    def work(number: int) -> None:
        run = program.load_method("forward")
        x = np.full((64, 64), number, np.float32)
        for _ in range(200):
            if not (run.execute([x, x])[0] == 2 * number).all():
                failures.append(number)

    run_in_threads(work)
    assert failures == []


def test_kernels_use_threads(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((10_000,)))
    out = b.tensor((10_000,))
    b.call("aten::square.out", x, out, out)
    b.output(out)
    run = method(runtime, b.serialize())
    values = np.arange(10_000, dtype=np.float32)
    usable = etx_runtime.get_num_threads()
    assert usable >= 1
    for threads in (1, 4, 2):
        etx_runtime.set_num_threads(threads)
        assert etx_runtime.get_num_threads() == threads
        for _ in range(50):
            np.testing.assert_array_equal(run.execute([values])[0], values * values)
    etx_runtime.set_num_threads(0)
    assert etx_runtime.get_num_threads() == usable


def test_torch_is_not_imported() -> None:
    assert "torch" not in sys.modules
