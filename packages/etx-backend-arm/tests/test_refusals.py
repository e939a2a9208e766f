# SPDX-License-Identifier: BSD-3-Clause
"""What a chip would not notice: commands with one thing wrong are refused, with their offset."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

import etx_runtime
import numpy as np
import pytest
import torch
from etx_backend_arm.ethos_u import backend
from etx_backend_arm.ethos_u.backend import EthosUPartitioner
from etx_backend_arm.ethos_u.blob import EthosUBlob, npu_of, read_blob
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.ethos_u.report import layer_at
from etx_schema.errors import EtxError
from lowered import delegates, lower_exported
from test_firmware import firmware
from test_simulator import CASES, compiled, exported, prepared

DMA, DMA_WAIT, KERNEL_WAIT = 0x010, 0x011, 0x012
OFM_REGION, SOURCE_REGION = 0x11F, 0x130
IFM_BASE, OFM_BASE, DMA_TARGET = 0x4000, 0x4010, 0x4031
STRIDES_OF_MAPS = (0x4004, 0x4005, 0x4014, 0x4015)
NOT_WAITED = 15
STRIDES = 0x200
Words = list[int]


def stream_of(commands: bytes) -> tuple[Words, int]:
    """Return the words of a driver's commands, and where the NPU's begin."""
    words = np.frombuffer(commands, np.uint32).tolist()
    at = 1
    while words[at] & 255 != 2:
        at += 3 if words[at] & 255 == 1 else 1
    return words, at + 1


def find(words: Words, begin: int, code: int) -> Iterator[int]:
    """Yield where a command is."""
    at = begin
    while at < len(words):
        is_long = words[at] & 0xC000 == 0x4000
        if words[at] & 0xFFFF == code:
            yield at
        at += 2 if is_long else 1


def parameter(code: int, number: int) -> Callable[[Words, int], None]:
    """Return what sets the parameter of all commands of a kind."""

    def change(words: Words, begin: int) -> None:
        for at in find(words, begin, code):
            words[at] = code | number << 16

    return change


def strides(words: Words, begin: int) -> None:
    for at in find(words, begin, SOURCE_REGION):
        words[at] |= STRIDES << 16


def address(code: int, number: int) -> Callable[[Words, int], None]:
    """Return what sets the first address of a kind."""

    def change(words: Words, begin: int) -> None:
        words[next(find(words, begin, code)) + 1] = number

    return change


def over_an_operator(code: int) -> Callable[[Words, int], None]:
    """Return what lets a transfer write what the operator before it, not waited for, uses."""

    def change(words: Words, begin: int) -> None:
        *_, start = find(words, begin, DMA)
        *_, target = (at for at in find(words, begin, DMA_TARGET) if at < start)
        *_, used = (at for at in find(words, begin, code) if at < start)
        words[target + 1] = words[used + 1]
        parameter(KERNEL_WAIT, NOT_WAITED)(words, begin)

    return change


def over_a_transfer(words: Words, begin: int) -> None:
    """Let an operator write where a transfer goes to that is not waited for."""
    (start, *_) = find(words, begin, DMA)
    target = next(at for at in find(words, begin, DMA_TARGET) if at < start)
    for at in find(words, begin, OFM_BASE):
        if at > start:
            words[at + 1] = words[target + 1]
    parameter(DMA_WAIT, NOT_WAITED)(words, begin)


UNKNOWN = "a read of bytes that nothing has written, or of a transfer not waited for"
REFUSED: dict[str, tuple[str, Callable[[Words, int], None], str]] = {
    "transfer_not_waited_for": ("wide", parameter(DMA_WAIT, NOT_WAITED), UNKNOWN),
    "transfer_over_an_input": (
        "wide",
        over_an_operator(IFM_BASE),
        "a transfer over what an operator not waited for uses",
    ),
    "transfer_over_an_output": (
        "wide",
        over_an_operator(OFM_BASE),
        "a transfer over what an operator not waited for uses",
    ),
    "transfer_of_an_output": (
        "conv",
        parameter(OFM_REGION, 0),
        "a transfer of what an operator not waited for writes",
    ),
    "operator_over_a_transfer": (
        "wide",
        over_a_transfer,
        "an operator that writes over what a transfer not waited for uses",
    ),
    "never_written": ("conv", address(IFM_BASE, 0x1000), UNKNOWN),
    "read_behind": ("conv", address(IFM_BASE, 0x7FFFFF00), "a read behind its region's end"),
    "write_behind": ("conv", address(OFM_BASE, 0x7FFFFF00), "a write behind its region's end"),
    "write_into_weights": ("rounded", parameter(OFM_REGION, 0), "a write into constant memory"),
    "region": ("conv", parameter(OFM_REGION, 5), "a region that is not there"),
    "strides": ("wide", strides, "a transfer out of the NPU or with strides"),
}


def with_commands(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[EthosUBlob], EthosUBlob]
) -> None:
    """Let programs have the commands that ``change`` makes."""
    compile_graph = backend.compile_and_report

    def changed(*args: Any) -> Any:
        blob, report = compile_graph(*args)
        return change(blob), report

    monkeypatch.setattr(backend, "compile_and_report", changed)


@cache
def run_right(case: str) -> None:
    """Run a case whose commands are not changed."""
    model, x = prepared(CASES[case])
    etx_runtime.load(compiled(model, x, "ethos-u55-128"))(x.numpy())


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_commands_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, change, reason = REFUSED[name]
    model, x = prepared(CASES[case])

    def wrong(blob: EthosUBlob) -> EthosUBlob:
        words, begin = stream_of(blob.commands)
        change(words, begin)
        return replace(blob, commands=np.array(words, np.uint32).tobytes())

    run_right(case)
    with_commands(monkeypatch, wrong)
    program = compiled(model, x, "ethos-u55-128")
    said = rf"command at offset 0x[0-9a-f]+: {re.escape(reason)}"
    with pytest.raises((etx_runtime.LoadError, etx_runtime.ExecutionError), match=said):
        etx_runtime.load(program)(x.numpy())


def test_the_offset_names_the_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = prepared(CASES["wide"])
    reports, compile_graph = [], backend.compile_and_report

    def wrong(*args: Any) -> Any:
        blob, report = compile_graph(*args)
        words, begin = stream_of(blob.commands)
        ends = [each["commands"][-1] // 4 for each in report["layers"]]
        at = [i for i in find(words, begin, OFM_BASE) if ends[2] < i - begin < ends[3]]
        words[at[-1] + 1] = 0x7FFFFF00
        reports.append(report)
        return replace(blob, commands=np.array(words, np.uint32).tobytes()), report

    monkeypatch.setattr(backend, "compile_and_report", wrong)
    program = compiled(model, x, "ethos-u55-128")
    with pytest.raises(etx_runtime.ExecutionError, match="write behind its region") as caught:
        etx_runtime.load(program)(x.numpy())
    found = re.search(r"offset (0x[0-9a-f]+)", str(caught.value))
    assert found is not None
    layer = layer_at(reports[0], int(found.group(1), 16))
    assert layer == reports[0]["layers"][3]
    assert (layer["layer"], layer["op"]) == ("Conv2D", "aten.convolution.default")


def test_a_row_without_an_end_stops_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = prepared(torch.nn.MaxPool2d(3, 2))
    wide, tall = (0x111, 0x11A, 0x10A, 0x10B, 0x10C), (0x120, 0x121)
    none = (0x112, *range(0x100, 0x104))

    def endless(blob: EthosUBlob) -> EthosUBlob:
        words, begin = stream_of(blob.commands)
        for codes, number in ((wide, 0xFFFF), (tall, 0x1FF), (none, 0)):
            for code in codes:
                parameter(code, number)(words, begin)
        for code in STRIDES_OF_MAPS:
            address(code, 0)(words, begin)
        return replace(blob, commands=np.array(words, np.uint32).tobytes())

    with_commands(monkeypatch, endless)
    run = etx_runtime.load(compiled(model, x, "ethos-u55-128"))
    said: list[BaseException] = []

    def call() -> None:
        try:
            run(x.numpy())
        except etx_runtime.ExecutionError as error:
            said.append(error)

    thread = Thread(target=call, daemon=True)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive(), said
    run.method().cancel()
    thread.join(20)
    assert not thread.is_alive()
    assert "cancelled at instruction 0, EthosUBackend" in str(said[0])


def at_start(number: int) -> Callable[[EthosUBlob], EthosUBlob]:
    """Return what sets the driver's first word."""
    return lambda blob: replace(blob, commands=struct.pack("<I", number) + blob.commands[4:])


def configured(family: int, macs: int) -> Callable[[EthosUBlob], EthosUBlob]:
    """Return what sets the NPU that commands are for."""

    def change(blob: EthosUBlob) -> EthosUBlob:
        words = np.frombuffer(blob.commands, np.uint32).tolist()
        at = next(i for i in range(1, len(words)) if words[i] & 255 == 1)
        words[at + 1] = words[at + 1] & 0x0FFFFFF0 | family << 28 | macs.bit_length() - 1
        changed = np.array(words, np.uint32).tobytes()
        known = ("ethos-u55", "ethos-u65", "ethos-u85")
        assert npu_of(changed) == (f"{known[family]}-{macs}" if family < len(known) else None)
        return replace(blob, commands=changed)

    return change


SIZE = "it is for an NPU of another size; the simulator has 32 to 256 MACs, a U65 512"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (at_start(int.from_bytes(b"COP2", "little")), "its commands do not begin with COP1"),
        (configured(0, 512), SIZE),
        (configured(0, 16), SIZE),
        (configured(1, 1024), SIZE),
        (configured(2, 256), "it is for an Ethos-U85; the simulator is an Ethos-U55 or U65"),
        (configured(7, 256), "it is for an Ethos-U85; the simulator is an Ethos-U55 or U65"),
    ],
)
def test_another_version_or_npu_is_refused_when_it_is_loaded(
    change: Callable[[EthosUBlob], EthosUBlob], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x = prepared(CASES["conv"])
    with_commands(monkeypatch, change)
    program = compiled(model, x, "ethos-u55-128")
    with pytest.raises(etx_runtime.LoadError, match=reason):
        etx_runtime.load(program)(x.numpy())


@pytest.mark.parametrize("target", ["ethos-u55-32", "ethos-u65-512", "ethos-u85-2048"])
def test_commands_say_for_which_npu_they_are(target: str) -> None:
    model, x = prepared(CASES["conv"])
    partitioner = EthosUPartitioner(EthosUCompileSpec(target))
    (delegate,) = delegates(lower_exported(exported(model, x), partitioner))
    assert npu_of(read_blob(delegate.processed_bytes).commands) == target
    assert npu_of(b"COP1") is None


def test_firmware_has_the_npu_that_commands_are_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x = prepared(CASES["conv"])
    with_commands(monkeypatch, configured(1, 256))
    (tmp_path / "net.pte").write_bytes(compiled(model, x, "ethos-u55-128"))
    reason = r"holds commands for ethos-u65-256, and the target is cortex-m55\+ethos-u55-128: give "
    with pytest.raises(EtxError, match=reason):
        firmware(tmp_path / "net.pte", "--target", "cortex-m55+ethos-u55-128", "-o", tmp_path / "f")
    assert [path.name for path in tmp_path.iterdir()] == ["net.pte"]


@pytest.mark.parametrize(
    ("part", "reason"),
    [(100, "an input or output lies behind the end"), (1.1, " behind its region's end")],
)
def test_scratch_that_is_too_small(
    part: float, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x = prepared(CASES["wide"])
    with_commands(monkeypatch, lambda b: replace(b, scratch_size=int(b.scratch_size / part)))
    program = compiled(model, x, "ethos-u55-128")
    with pytest.raises((etx_runtime.LoadError, etx_runtime.ExecutionError), match=reason):
        etx_runtime.load(program)(x.numpy())
