# SPDX-License-Identifier: BSD-3-Clause
"""Dumps of ExecuTorch 1.5.1 and of ETX are read; damaged ones are an error with the byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from etx_devtools.etdump import Run, Statistics, read_etdump, to_python
from etx_exir import to_edge
from etx_runtime import Recorder, Runtime
from etx_schema import EtxError, ProgramError, decode_size_prefixed
from etx_schema._generated.etdump import ETDump
from etx_schema.encoder import encode
from hypothesis import given
from hypothesis import strategies as st

DATA = Path(__file__).parent / "data" / "etdump"
NAMES = ["executorch_portable", "executorch_xnnpack", "etx_portable"]
KERNELS = ["permute_copy", "addmm", "relu", "permute_copy", "addmm", "_to_dim_order_copy"]
KERNELS += ["add", "_softmax"]


def calls(run: Run) -> list[tuple[str, int, int]]:
    return [(span.name, span.chain, span.instruction) for span in run.spans]


@pytest.mark.parametrize("name", ["executorch_portable", "etx_portable"])
def test_both_runtimes_say_the_same_of_a_file(name: str) -> None:
    load, *executions = read_etdump(DATA / f"{name}.etdp")
    assert (load.name, load.is_execution) == ("Default", False)
    assert calls(load) == [("Method::init", -1, 0), ("Program::load_method", -1, 0)]
    assert len(executions) == 2
    expected = [
        (text, 0, index)
        for index, kernel in enumerate(KERNELS)
        for text in (f"native_call_{kernel}.out", "OPERATOR_CALL")
    ]
    for run in executions:
        assert run.is_execution
        assert calls(run) == [*expected, ("Method::execute", -1, 0)]
        assert all(span.ticks > 0 for span in run.spans)
        assert sum(s.ticks for s in run.spans if s.name == "OPERATOR_CALL") <= run.spans[-1].ticks


@pytest.mark.parametrize("name", ["executorch_portable", "etx_portable"])
def test_values(name: str) -> None:
    buffer = (DATA / f"{name}.bin").read_bytes()
    run = read_etdump(DATA / f"{name}.etdp")[1]
    values = [to_python(seen.value, buffer) for seen in run.seen]
    shapes = [(4, 8), (2, 8), (2, 8), (8, 3), (2, 3), (), (2, 3), (2, 3), (2, 3)]
    assert [value.shape for value in values] == shapes
    assert [seen.is_output for seen in run.seen] == [False] * 8 + [True]
    np.testing.assert_array_equal(values[2], np.maximum(values[1], 0))
    np.testing.assert_allclose(values[-1].sum(-1), 1, rtol=1e-6)
    with pytest.raises(ProgramError, match="does not lie in the debug buffer of 100 bytes"):
        [to_python(seen.value, buffer[:100]) for seen in run.seen]


def test_values_of_both_are_equal() -> None:
    theirs, ours = (
        [
            to_python(seen.value, (DATA / f"{name}.bin").read_bytes())
            for seen in read_etdump(DATA / f"{name}.etdp")[1].seen
        ]
        for name in ("executorch_portable", "etx_portable")
    )
    for one, other in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_what_xnnpack_tells() -> None:
    run = read_etdump(DATA / "executorch_xnnpack.etdp")[1]
    inner = [span for span in run.spans if span.delegate_id is not None]
    assert [span.name for span in inner] == [
        "Fully Connected (NC, F32) GEMM #1",
        "Fully Connected (NC, F32) GEMM #2",
        "Add (ND) #1",
        "Softmax (NC, F32) #1",
    ]
    assert {span.instruction for span in inner} == {1}
    assert [span.name for span in run.spans].count("DELEGATE_CALL") == 1


@pytest.mark.parametrize("name", NAMES)
def test_truncated_anywhere(name: str) -> None:
    data = (DATA / f"{name}.etdp").read_bytes()
    for size in range(0, len(data), 3):
        with pytest.raises(ProgramError, match=r"byte \d+: "):
            read_etdump(data[:size])


@given(st.data())
def test_damaged(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    content = bytearray((DATA / f"{name}.etdp").read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    try:
        runs = read_etdump(bytes(content))
        for run in runs:
            for seen in run.seen:
                to_python(seen.value, bytes(1024))
    except EtxError:
        pass


def test_offsets_that_lead_in_circles() -> None:
    """Each run of a dump is the same one, again and again."""
    data = bytearray((DATA / "etx_portable.etdp").read_bytes())
    for place in range(12, len(data) - 4, 4):
        circle = bytearray(data)
        circle[place : place + 4] = (2**32 - 16).to_bytes(4, "little")
        try:
            read_etdump(bytes(circle))
        except EtxError:
            continue


def test_many_events_and_values() -> None:
    """A column of each field is read at once: ten thousand events take no longer than some."""
    recorder = Recorder("stats", instructions=[(0, 0)])
    method = Runtime.get().load_program(bytes(chain(50))).load_method("forward")
    x = np.float32([[1, -2, np.nan, np.inf]])
    method.trace([x], recorder, 100)
    runs = read_etdump(recorder.etdump())
    assert [len(run.spans) for run in runs] == [2 * 50 + 1] * 100
    for run in runs[:: len(runs) - 1]:
        first, last = run.seen
        assert (first.chain, first.instruction, first.is_output) == (0, 0, False)
        assert (last.chain, last.is_output) == (-1, True)
        for seen in (first, last):
            statistics = seen.read(None)
            assert isinstance(statistics, Statistics)
            assert (statistics.dtype, statistics.shape) == ("float32", (1, 4))
            assert (statistics.nan, statistics.infinite) == (1, 1)
            assert statistics == seen.statistics
    first = runs[0].seen[0].read(None)
    assert (first.min, first.max, first.mean) == (-4, 2, -1)
    assert first.hash == hash_of((x + x).tobytes())


def test_statistics_without_their_mark() -> None:
    recorder = Recorder("stats")
    x = np.ones((1, 4), np.float32)
    Runtime.get().load_program(chain(1)).load_method("forward").trace([x], recorder)
    dump = decode_size_prefixed(ETDump, recorder.etdump(), "ED00")
    (first, *_) = (event.debug_event for event in dump.run_data[0].events if event.debug_event)
    first.debug_entry.tensor.offset = 0
    (seen, *_) = read_etdump(encode(dump, "ED00", size_prefixed=True))[0].seen
    with pytest.raises(ProgramError, match="statistics are six numbers at -1, got 6 at 0"):
        seen.read(None)


def hash_of(data: bytes) -> int:
    found = 0
    for byte in data:
        found = (found * 0x9E3779B97F4A7C15 + byte + 1) % 2**64
    return found


def chain(length: int) -> bytes:
    """Return a program that adds its input to itself, so often."""
    program = torch.export.export(Chain(length), (torch.ones(1, 4),))
    return bytes(to_edge(program).to_executorch().buffer)


class Chain(torch.nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + x
        for _ in range(self.length - 1):
            y = torch.neg(y)
        return y


def test_another_file() -> None:
    with pytest.raises(ProgramError, match="byte 8: expected identifier 'ED00'"):
        read_etdump(bytes([60, 0, 0, 0]) + bytes(60))
