# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from conftest import compile_plugin
from etx_runtime import ExecutionError, InputError, LoadError, PluginError, Runtime
from programs import BOOL, LONG, Builder, addition

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([X], "forward takes 2 inputs, got 1"),
        ([X, X, X], "forward takes 2 inputs, got 3"),
        ([X, X.astype(np.float64)], r"input 1: expected float32\[2, 3\], got float64\[2, 3\]"),
        ([X, X[:1]], r"input 1: expected float32\[2, 3\], got float32\[1, 3\]"),
        ([X.ravel(), X], r"input 0: expected float32\[2, 3\], got float32\[6\]"),
        ([X, "text"], r"input 1: expected float32\[2, 3\] \(a NumPy array, .* got str"),
        ([X, [1.0, 2.0]], r"input 1: expected float32\[2, 3\] \(a NumPy .* got list"),
        ([X, None], "input 1: expected .* got NoneType"),
        ([np.array(["a"]), X], "input 0: arrays of this dtype are not supported: <U1"),
    ],
)
def test_wrong_inputs(runtime: Runtime, inputs: list[object], message: str) -> None:
    add = runtime.load_program(addition()).load_method("forward")
    with pytest.raises(InputError, match=message):
        add.execute(inputs)
    np.testing.assert_array_equal(add.execute([X, X])[0], X * 2)


def test_errors_are_etx_errors() -> None:
    for error in (ExecutionError, InputError, LoadError, PluginError, etx_runtime.MetadataError):
        assert issubclass(error, es.EtxError)


def test_missing_file_and_folder(runtime: Runtime, tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"none\.pte: No such file or directory"):
        runtime.load_program(tmp_path / "none.pte")
    with pytest.raises(LoadError, match="not a regular file"):
        runtime.load_program(tmp_path)
    (tmp_path / "empty.pte").touch()
    with pytest.raises(LoadError, match=r"empty\.pte: .*shorter than 64 bytes"):
        runtime.load_program(tmp_path / "empty.pte")
    with pytest.raises(LoadError, match="No such file"):
        runtime.load_program(addition(), data_paths=[tmp_path / "none.ptd"])


def test_missing_method(runtime: Runtime) -> None:
    program = runtime.load_program(addition())
    with pytest.raises(LoadError, match="no method 'other'; it has 'forward'"):
        program.load_method("other")
    with pytest.raises(etx_runtime.MetadataError, match="it has: forward"):
        program.method_meta("other")


def test_missing_kernels_are_reported_at_once(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((1,)))
    b.call("aten::nothing.out", x, x)
    b.call("aten::never", x, x)
    with pytest.raises(LoadError, match=r"2 operators: aten::nothing\.out, aten::never") as caught:
        runtime.load_program(b.serialize()).load_method("forward")
    assert caught.value.code == 0x14


def test_failing_kernel_says_where(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((2,)))
    b.add(x, x, b.tensor((2,)))
    b.add(x, b.tensor((3,)), b.tensor((2,)))
    b.named["etx/debug"] = es.NamedBlob(
        b'{"forward": {"instructions": [null, {"module": "net.add", "source": "net.py:7"}]}}'
    )
    run = runtime.load_program(b.serialize()).load_method("forward")
    with pytest.raises(ExecutionError) as caught:
        run.execute([np.ones(2, np.float32)])
    text = str(caught.value)
    assert "aten::add.out failed at instruction 1: self and other differ in shape" in text
    assert "arguments: float32[2], float32[3], 1, float32[2], float32[2]" in text
    assert "from net.add, net.py:7" in text
    assert (caught.value.instruction, caught.value.code) == (1, 0x12)


def not_a_program(data: bytes) -> bytes:
    return b"\0" * len(data)


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


@pytest.mark.parametrize("change", [not_a_program, cut])
def test_corrupt_files(runtime: Runtime, change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(LoadError):
        runtime.load_program(change(addition()))


def tensor_of(b: Builder, index: int) -> es.Tensor:
    tensor = b.plan.values[index].val
    assert isinstance(tensor, es.Tensor)
    return tensor


def change_size(b: Builder) -> None:
    tensor_of(b, 0).sizes = [2**30, 2**30]


def change_rank(b: Builder) -> None:
    tensor_of(b, 0).dim_order = [0]


def change_order(b: Builder) -> None:
    tensor_of(b, 0).dim_order = [1, 1]


def change_offset(b: Builder) -> None:
    tensor_of(b, 1).allocation_info.memory_offset_high = 1


def change_arena(b: Builder) -> None:
    tensor_of(b, 1).allocation_info.memory_id = 2


def change_storage_offset(b: Builder) -> None:
    tensor_of(b, 1).storage_offset = 4


def change_argument(b: Builder) -> None:
    b.chain.instructions[0].instr_args.args[0] = 99


def change_operator(b: Builder) -> None:
    b.chain.instructions[0].instr_args.op_index = 1


def change_jump(b: Builder) -> None:
    b.jump_false(b.bool(False), 9)


def change_condition(b: Builder) -> None:
    b.jump_false(0, 0)


def change_kind(b: Builder) -> None:
    b.move(0, b.int(1))


def change_dtype(b: Builder) -> None:
    b.move(0, b.tensor((2, 3), LONG))


def change_output(b: Builder) -> None:
    b.output(-1)


def change_constant(b: Builder) -> None:
    tensor = tensor_of(b, 0)
    tensor.allocation_info, tensor.data_buffer_idx = None, 7


def change_list(b: Builder) -> None:
    b.value(es.TensorList(items=[0, b.int(3)]))


def change_boxed(b: Builder) -> None:
    b.value(es.IntList(items=[0]))


def change_source(b: Builder) -> None:
    b.move(99, 0)


def change_target(b: Builder) -> None:
    b.move(0, 99)


def drop_condition(b: Builder) -> None:
    b.jump_false(99, 0)


def drop_bounds(b: Builder) -> None:
    tensor_of(b, 0).shape_dynamism = es.TensorShapeDynamism.DYNAMIC_UNBOUND


def change_name(b: Builder) -> None:
    b.plan.name = "forward\0"


def drop_name(b: Builder) -> None:
    b.plan.name = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (change_size, "a tensor ends after its arena"),
        (change_rank, "a tensor's dim order and sizes differ in length"),
        (change_order, "a tensor's dim order is not a permutation"),
        (change_offset, "a tensor ends after its arena"),
        (change_arena, "a tensor lies in an arena that does not exist"),
        (change_storage_offset, "a tensor has a storage offset"),
        (change_argument, "an argument is not a value of the method"),
        (change_operator, "a kernel call has no operator"),
        (change_jump, "a jump leaves the method"),
        (change_condition, "a jump's condition is neither a bool nor an integer"),
        (change_kind, "a move changes the kind, dtype or rank of a value"),
        (change_dtype, "a move changes the kind, dtype or rank of a value"),
        (change_output, "an output is not a value of the method"),
        (change_constant, "a tensor's stored data does not exist"),
        (change_list, "an item of a tensor list is not a tensor"),
        (change_boxed, "an item of an int list is not an int value"),
        (change_source, "a move's source is not a value of the method"),
        (change_target, "a move's target is not a value of the method"),
        (drop_condition, "a jump has no condition"),
        (drop_bounds, "a tensor has a shape without bounds"),
        (change_name, "a method's name holds a zero byte"),
        (drop_name, "a method has no name"),
    ],
)
def test_wrong_tables(runtime: Runtime, change: Callable[[Builder], None], reason: str) -> None:
    """A message names one cause, and the byte of the table that has it."""
    b = Builder()
    x, y, out = (b.tensor((2, 3)) for _ in range(3))
    b.input(x), b.input(y)
    b.add(x, y, out)
    b.output(out)
    assert runtime.load_program(b.serialize()).method_names == {"forward"}
    change(b)
    with pytest.raises(LoadError, match=rf"^(forward: )?{re.escape(reason)} \[.*byte \d+, "):
        runtime.load_program(b.serialize())


def test_wrong_arguments(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((2,)))
    b.call("aten::add.out", x, x, x, x, x)
    with pytest.raises(
        LoadError, match=r"aten::add\.out: an argument is not of the kind .*index 2"
    ):
        runtime.load_program(b.serialize()).load_method("forward")
    b = Builder()
    x = b.input(b.tensor((2,)))
    b.call("aten::add.out", x, x)
    with pytest.raises(LoadError, match="too few arguments"):
        runtime.load_program(b.serialize()).load_method("forward")


def scaling(factor: float, data: bytes | None, *, given: bool = False) -> Builder:
    """`etx_test::scale`, which checks at load; with `given` the factor is an input."""
    b = Builder()
    x = b.tensor((2,), data=data, memory="planned" if data is None else "constant")
    if data is None:
        b.input(x)
    number = b.value(es.Double(double_val=factor))
    if given:
        b.input(number)
    out = b.tensor((2,))
    b.call("etx_test::scale.out", x, number, out)
    b.output(out)
    return b


def test_kernels_check_at_load(runtime: Runtime) -> None:
    def load(b: Builder) -> etx_runtime.Method:
        return runtime.load_program(b.serialize()).load_method("forward")

    ones, one = np.ones(2, np.float32), np.array([1, -1], np.float32).tobytes()
    assert load(scaling(2.0, None)).execute([ones])[0].tolist() == [2, 2]
    reason = r"etx_test::scale\.out: factor must be greater than 0 \[instruction 0, .*; arguments: "
    with pytest.raises(LoadError, match=reason + r"float32\[2\], -1, float32\[2\]"):
        load(scaling(-1.0, None))
    with pytest.raises(LoadError, match=r"x must be greater than 0 \[instruction 0, "):
        load(scaling(2.0, one))
    method = load(scaling(-1.0, None, given=True))
    with pytest.raises(ExecutionError, match="factor must be greater than 0"):
        method.execute([ones, -3.0])
    assert method.execute([ones, 3.0])[0].tolist() == [3, 3]


def test_constants_are_not_written(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((2,)))
    constant = b.tensor((2,), memory="constant", data=bytes(8))
    b.add(x, x, constant)
    with pytest.raises(LoadError, match="would write to a constant"):
        runtime.load_program(b.serialize()).load_method("forward")
    b = Builder()
    x = b.input(b.tensor((2,)))
    constant = b.tensor((2,), memory="constant", data=bytes(8))
    target = b.tensor((2,))
    b.move(constant, target)
    b.add(x, x, target)
    run = runtime.load_program(b.serialize()).load_method("forward")
    with pytest.raises(ExecutionError, match="is constant and written to"):
        run.execute([np.ones(2, np.float32)])


def test_freed_and_missing_memory(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((2,)))
    out = b.tensor((2,))
    b.free(x)
    b.add(x, x, out)
    run = runtime.load_program(b.serialize()).load_method("forward")
    for _ in range(2):
        with pytest.raises(ExecutionError, match="was freed"):
            run.execute([np.ones(2, np.float32)])
    b = Builder()
    nowhere = b.tensor((2,), memory="unbound")
    b.add(nowhere, nowhere, b.tensor((2,)))
    with pytest.raises(ExecutionError, match="has no memory"):
        runtime.load_program(b.serialize()).load_method("forward").execute([])


def test_view_keeps_its_bounds(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((2,), dynamic=True))
    view = b.tensor((100,), memory="unbound", dynamic=True)
    big = b.tensor((100,))
    b.call("executorch_prim::et_view.default", x, b.value(es.IntList(items=[b.int(-1)])), view)
    b.add(big, big, view)
    run = runtime.load_program(b.serialize()).load_method("forward")
    with pytest.raises(ExecutionError, match=r"aten::add\.out failed at instruction 1"):
        run.execute([np.ones(2, np.float32)])


def test_empty_condition_is_true(runtime: Runtime) -> None:
    b = Builder()
    condition = b.input(b.tensor((0,), BOOL))
    number = b.int(1)
    b.jump_false(condition, 2)
    b.move(b.int(2), number)
    b.output(number)
    run = runtime.load_program(b.serialize()).load_method("forward")
    assert run.execute([np.zeros(0, bool)]) == [2]


@pytest.mark.parametrize(("least", "result"), [(2, 2), (3, 1)])
def test_condition_in_a_slot_stored_as_an_integer(
    runtime: Runtime, least: int, result: int
) -> None:
    """ExecuTorch's exporter stores the result of comparing sizes so."""
    b = Builder()
    condition, number = b.int(7), b.int(1)
    b.call("executorch_prim::lt.Scalar", b.int(least), b.int(3), condition)
    b.jump_false(condition, 3)
    b.move(b.int(2), number)
    b.output(number)
    run = runtime.load_program(b.serialize()).load_method("forward")
    assert run.execute([]) == [result]
    assert run.execute([]) == [result]


PLUGIN = """
#define ETX_ABI_MAJOR {major}
#define ETX_ABI_MINOR {minor}
#include <stddef.h>
#include <stdint.h>
struct Plugin {{
  uint32_t size; uint16_t major, minor; const char *name, *version; const void* tables;
  size_t num_tables; const void* backends; size_t num_backends;
}};
extern "C" __attribute__((visibility("default"))) const Plugin* etx_plugin_v1() {{
  static const Plugin plugin = {{{size}, {major}, {minor}, "other-kernels", "9", 0, 0, 0, 0}};
  return &plugin;
}}
"""


@pytest.mark.parametrize(
    ("major", "minor", "size", "message"),
    [
        (1, 7, 64, "other-kernels is built for ETX ABI 1.7, .* provides ABI 1.6; upgrade etx-run"),
        (2, 0, 64, "built for ETX ABI 2.0, .*; upgrade etx-runtime"),
        (0, 9, 64, "built for ETX ABI 0.9, .*; upgrade the plugin"),
    ],
)
def test_other_abi(
    runtime: Runtime, tmp_path: Path, major: int, minor: int, size: int, message: str
) -> None:
    source = tmp_path / "plugin.cpp"
    source.write_text(PLUGIN.format(major=major, minor=minor, size=size))
    library = compile_plugin(source, tmp_path / "libother.so")
    with pytest.raises(PluginError, match=message):
        runtime.load_plugin(library)


def test_no_plugin(runtime: Runtime, tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="cannot open shared object"):
        runtime.load_plugin(tmp_path / "none.so")
    source = tmp_path / "nothing.cpp"
    source.write_text("int unused() { return 0; }\n")
    library = compile_plugin(source, tmp_path / "libnothing.so")
    with pytest.raises(PluginError, match="exports no etx_plugin_v1"):
        runtime.load_plugin(library)
