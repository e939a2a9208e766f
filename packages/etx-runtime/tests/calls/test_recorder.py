# SPDX-License-Identifier: BSD-3-Clause
"""Recording executions: order and names of events, values, and what happens without room."""

from __future__ import annotations

import gc
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from etx_runtime import Recorder, Runtime
from etx_schema._generated.etdump import ETDump, ProfileEvent, RunData, Tensor
from programs import Builder, addition, counter, loop

X = np.arange(6, dtype=np.float32).reshape(2, 3)
SMALLEST = 560
ONE = np.ones(1, np.float32)


def read(recorder: Recorder) -> list[RunData]:
    dump: ETDump = es.decode_size_prefixed(ETDump, recorder.etdump(), "ED00")
    assert dump.version == 0
    return dump.run_data


def spans(run: RunData) -> list[ProfileEvent]:
    return [event.profile_event for event in run.events if event.profile_event]


def names(run: RunData) -> list[str]:
    return [event.name for event in spans(run)]


def notes(run: RunData) -> str:
    return " | ".join(each.name for each in run.allocators)


def record(runtime: Runtime, content: bytes, inputs: list[Any], **options: Any) -> Recorder:
    recorder = Recorder(**options)
    method = runtime.load_program(content).load_method("forward", recorder=recorder)
    plain = runtime.load_program(content).load_method("forward").execute(inputs)
    for one, other in zip(method.trace(inputs, recorder), plain, strict=True):
        np.testing.assert_array_equal(one, other)
    return recorder


def test_loads_and_executions_in_order_of_their_end(runtime: Runtime) -> None:
    recorder = record(runtime, counter(), [ONE])
    load, run = read(recorder)
    assert (load.name, names(load)) == ("Default", ["Method::init", "Program::load_method"])
    assert {(e.chain_index, e.instruction_id) for e in spans(load)} == {(-1, 0)}
    assert run.name == "Execute"
    assert names(run) == [
        "native_call_add.out",
        "OPERATOR_CALL",
        "native_call_copy_",
        "OPERATOR_CALL",
        "Method::execute",
    ]
    assert [e.instruction_id for e in spans(run)] == [0, 0, 1, 1, 0]
    assert [e.chain_index for e in spans(run)] == [0, 0, 0, 0, -1]
    assert notes(run) == notes(load) == "etx method=forward"
    whole, first, second = spans(run)[-1], spans(run)[1], spans(run)[3]
    assert spans(load)[-1].end_time <= whole.start_time <= first.start_time <= first.end_time
    assert first.end_time == second.start_time <= second.end_time <= whole.end_time


def test_without_a_recorder_nothing_is_recorded(runtime: Runtime) -> None:
    recorder = Recorder()
    method = runtime.load_program(counter()).load_method("forward", recorder=recorder)
    method.execute([ONE])
    assert [run.name for run in read(recorder)] == ["Default"]
    recorder.clear()
    assert read(recorder) == []
    method.trace([ONE], recorder)
    assert [run.name for run in read(recorder)] == ["Execute"]


def test_control_flow(runtime: Runtime) -> None:
    run = read(record(runtime, loop(3), []))[1]
    assert {"JF_CALL", "OPERATOR_CALL"} <= set(names(run))


def test_values_lie_in_the_debug_buffer(runtime: Runtime, tmp_path: Path) -> None:
    recorder = record(runtime, addition(), [X, X], values="all")
    recorder.save(tmp_path / "a.etdp", tmp_path / "a.bin")
    assert (tmp_path / "a.etdp").read_bytes() == recorder.etdump()
    buffer = (tmp_path / "a.bin").read_bytes()
    seen = [e.debug_event for e in read(recorder)[1].events if e.debug_event]
    assert [(e.chain_index, e.instruction_id) for e in seen] == [(0, 0), (2**64 - 1, 0)]
    assert [e.debug_entry.output is not None for e in seen] == [False, True]
    for event in seen:
        np.testing.assert_array_equal(value_of(event.debug_entry.tensor, buffer), 2 * X)
    assert len(buffer) == 128
    outputs = record(runtime, addition(), [X, X], values="outputs")
    assert len(outputs.debug_buffer()) == 64
    assert record(runtime, addition(), [X, X]).debug_buffer() == b""


def value_of(tensor: Tensor, buffer: bytes) -> np.ndarray[Any, Any]:
    assert tensor.scalar_type == 6
    assert tensor.offset % 64 == 0
    count = int(np.prod(tensor.sizes))
    return np.frombuffer(buffer, np.float32, count, tensor.offset).reshape(tensor.sizes)


def stats(run: RunData) -> list[tuple[Any, ...]]:
    """Return of each: instruction, sizes, min, max, mean, NaN, infinite, hash."""
    found = []
    for event in (e.debug_event for e in run.events if e.debug_event):
        value = event.debug_entry
        assert (value.val, value.tensor.offset, value.tensor.scalar_type) == (0, -1, 6)
        numbers = struct.unpack("<3d", struct.pack("<3q", *value.tensor.strides[:3]))
        nan, infinite, digest = value.tensor.strides[3:]
        sizes = tuple(value.tensor.sizes)
        found.append((event.instruction_id, sizes, *numbers, nan, infinite, digest % 2**64))
    return found


def polynomial(data: bytes) -> int:
    digest = 0
    for byte in data:
        digest = (digest * 0x9E3779B97F4A7C15 + byte + 1) % 2**64
    return digest


def test_statistics_in_place_of_values(runtime: Runtime) -> None:
    x = np.array([[1, -2.5, np.nan], [np.inf, -np.inf, 7]], np.float32)
    recorder = record(runtime, addition(), [x, x], values="stats")
    assert recorder.debug_buffer() == b""
    seen = stats(read(recorder)[1])
    finite = np.array([2, -5, 14])
    expected = ((2, 3), -5.0, 14.0, finite.mean(), 1, 2, polynomial((x + x).tobytes()))
    assert seen == [(0, *expected), (0, *expected)]
    only_nan = np.full((2, 3), np.nan, np.float32)
    (first, _) = stats(read(record(runtime, addition(), [only_nan, X], values="stats"))[1])
    assert first[1:7] == ((2, 3), 0.0, 0.0, 0.0, 6, 0)


@pytest.mark.parametrize("rank", [1, 4, 8])
def test_statistics_are_small(runtime: Runtime, rank: int) -> None:
    def size(values: str, length: int) -> int:
        x = np.ones((1,) * rank, np.float32)
        return len(record(runtime, chain(length, rank), [x], values=values).etdump())

    few, many = (size("stats", n) - size("none", n) for n in (10, 110))
    assert many - few <= 200 * 100


@pytest.mark.parametrize("values", ["all", "stats"])
def test_only_some_instructions(runtime: Runtime, values: Any) -> None:
    recorder = record(runtime, chain(9), [ONE], values=values, instructions=[(1, 2), (6, 6)])
    seen = [e.debug_event for e in read(recorder)[1].events if e.debug_event]
    assert [e.instruction_id for e in seen if e.chain_index == 0] == [1, 2, 6]
    assert seen[-1].chain_index == 2**64 - 1
    assert len(recorder.debug_buffer()) == (4 * 64 if values == "all" else 0)


def chain(length: int, rank: int = 1) -> bytes:
    b = Builder()
    x = b.input(b.tensor((1,) * rank))
    out = b.tensor((1,) * rank)
    for _ in range(length):
        b.add(x, x, out)
    b.output(out)
    return b.serialize()


def test_events_are_small(runtime: Runtime) -> None:
    few, many = (len(record(runtime, chain(n), [ONE]).etdump()) for n in (10, 1010))
    assert many - few == 1000 * 2 * 44


@pytest.mark.parametrize("memory", [*range(500, 1600, 29), 3000, 10_000])
def test_without_room_the_rest_is_counted(runtime: Runtime, memory: int) -> None:
    recorder = Recorder(memory=memory, values="all", debug_memory=memory // 4)
    method = runtime.load_program(chain(20)).load_method("forward", recorder=recorder)
    for _ in range(3):
        method.trace([ONE], recorder)
    if memory < SMALLEST:
        with pytest.raises(etx_runtime.ExecutionError, match="1024 bytes"):
            recorder.etdump()
    needed, needed_debug = recorder.required_bytes
    full = Recorder(memory=needed, values="all", debug_memory=needed_debug)
    other = runtime.load_program(chain(20)).load_method("forward", recorder=full)
    for _ in range(3):
        other.trace([ONE], full)
    assert (full.missing_events, full.missing_values) == (0, 0)
    if memory >= SMALLEST:
        runs = read(recorder)
        kept = sum(len(run.events) for run in runs)
        every = sum(len(run.events) for run in read(full))
        assert kept + recorder.missing_events + recorder.missing_values == every
        told = re.findall(r"etx missing events=(\d+)", " ".join(map(notes, runs)))
        assert sum(map(int, told)) == (recorder.missing_events if runs else 0)


def test_the_failing_instruction_is_recorded(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((1,)))
    out = b.tensor((1,))
    b.add(x, x, out)
    b.free(out)
    b.add(out, x, out)
    b.output(x)
    recorder = Recorder()
    method = runtime.load_program(b.serialize()).load_method("forward")
    with pytest.raises(etx_runtime.ExecutionError):
        method.trace([ONE], recorder)
    (run,) = read(recorder)
    assert names(run)[-3:] == ["native_call_add.out", "OPERATOR_CALL", "Method::execute"]
    assert spans(run)[-2].instruction_id == 2
    assert "etx failed error=2 instruction=2" in notes(run)


def test_each_execution_has_the_inputs(runtime: Runtime) -> None:
    """An operator in place writes to where the planned input lies."""
    b = Builder()
    x = b.input(b.tensor((2, 3), memory="planned"))
    b.add(x, x, x)
    b.output(x)
    recorder = Recorder("outputs")
    method = runtime.load_program(b.serialize()).load_method("forward")
    for y in method.trace([X], recorder, executions=3):
        np.testing.assert_array_equal(y, 2 * X)
    runs = read(recorder)
    assert len(runs) == 3
    buffer = recorder.debug_buffer()
    for run in runs:
        (tensor,) = [e.debug_event.debug_entry.tensor for e in run.events if e.debug_event]
        np.testing.assert_array_equal(value_of(tensor, buffer), 2 * X)
    method.time_executions([X], 3)
    np.testing.assert_array_equal(method.execute([X])[0], 2 * X)


class Telling:
    """A backend that tells what it does, by name and by number."""

    def init(self, blob: bytes, specs: object) -> list[bool]:
        return []

    def execute(self, handle: list[bool], args: list[Any]) -> None:
        start = etx_runtime.ticks()
        args[-1][:] = args[0]
        middle = etx_runtime.ticks()
        handle.append(etx_runtime.trace_event("copy", start, middle, b"metadata"))
        handle.append(etx_runtime.trace_event(7, middle, etx_runtime.ticks()))


def test_python_backends_tell_their_events(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((1,)))
    out = b.tensor((1,))
    reference = es.BackendDelegateDataReference(es.DataLocation.INLINE, 0)
    b.plan.delegates.append(es.BackendDelegate("Telling", reference, []))
    b.instruction(es.DelegateCall(0, [x, out]))
    b.output(out)
    pte = b.pte()
    pte.program.backend_delegate_data = [es.BackendDelegateInlineData(b"")]
    etx_runtime.register_backend("Telling", Telling())
    try:
        recorder = record(runtime, es.serialize_pte(pte), [ONE])
    finally:
        etx_runtime.unregister("Telling")
    copy, seven, call, _ = spans(read(recorder)[1])
    assert (copy.delegate_debug_id_str, copy.delegate_debug_metadata) == ("copy", b"metadata")
    assert (seven.delegate_debug_id_int, seven.delegate_debug_id_str) == (7, None)
    assert call.name == "DELEGATE_CALL"
    assert call.start_time <= copy.start_time <= copy.end_time == seven.start_time <= call.end_time
    assert not etx_runtime.trace_event("outside", 0, 1)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="none, outputs, all, stats, got 'some'"):
        Recorder("some")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected values='none' beside it, got 'all'"):
        Recorder("all", threads=True)
    with pytest.raises(ValueError, match="got -1"):
        Recorder(memory=-1)
    with pytest.raises(ValueError, match=r"first <= last from 0, got \(3, 2\)"):
        Recorder("all", instructions=[(0, 1), (3, 2)])


def test_names_are_found_after_a_dump(runtime: Runtime) -> None:
    """What closes a dump is taken back when recording goes on; names are not."""
    recorder = record(runtime, counter(), [ONE])
    first = read(recorder)
    method = runtime.load_program(counter()).load_method("forward", recorder=recorder)
    sizes = []
    for _ in range(3):
        method.trace([ONE], recorder)
        sizes.append(len(recorder.etdump()))
    found = read(recorder)
    assert [names(run) for run in found[2:]] == [names(first[0])] + 3 * [names(first[1])]
    assert abs(sizes[2] - 2 * sizes[1] + sizes[0]) <= 8  # of alignment
    assert recorder.etdump().count(b"native_call_copy_\0") == 1


def test_recording_what_a_delegate_tells_takes_no_search() -> None:
    assert Recorder.inner_cost_ns() < 1000


def test_the_first_cost_is_that_of_later_ones() -> None:
    script = "from etx_runtime import Recorder as R; print(R.cost_ns(), R.cost_ns())"
    command = [sys.executable, "-I", "-c", script]
    first, later = map(float, subprocess.check_output(command, text=True).split())
    assert 0 < first < 2 * later


def test_values_are_seen_without_a_copy(runtime: Runtime) -> None:
    recorder = record(runtime, counter(), [ONE], values="all")
    view = recorder.debug_view()
    assert view.readonly
    assert bytes(view) == recorder.debug_buffer() != b""
    held = bytes(view)
    del recorder
    gc.collect()
    assert bytes(view) == held
    assert bytes(Recorder().debug_view()) == b""
