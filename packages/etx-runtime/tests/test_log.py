# SPDX-License-Identifier: BSD-3-Clause
"""The level and the sink of the log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import etx_runtime
import pytest
from etx_runtime import LoadError, Runtime
from programs import addition


@pytest.fixture
def messages() -> Iterator[list[tuple[str, str]]]:
    found: list[tuple[str, str]] = []
    etx_runtime.set_log_sink(lambda level, text: found.append((level, text)))
    yield found
    etx_runtime.set_log_sink(None)
    etx_runtime.set_log_level("fatal")


def test_log(runtime: Runtime, messages: list[tuple[str, str]], tmp_path: Path) -> None:
    path = tmp_path / "add.pte"
    path.write_bytes(addition())
    runtime.load_program(path)
    assert messages == []
    etx_runtime.set_log_level("info")
    runtime.load_program(path).load_method("forward")
    assert [level for level, _ in messages] == ["info", "info"]
    assert f"{path}: loaded {path.stat().st_size} bytes, 1 method," in messages[0][1]
    assert "method 'forward': loaded 1 instruction, planned" in messages[1][1]
    path.write_bytes(b"x" * 100)
    with pytest.raises(LoadError) as caught:
        runtime.load_program(path)
    assert messages[2] == ("info", str(caught.value))


def test_log_refuses(messages: list[tuple[str, str]]) -> None:
    with pytest.raises(ValueError, match="expected one of debug, info, error, fatal, got 'loud'"):
        etx_runtime.set_log_level("loud")
    with pytest.raises(TypeError, match="expected None or a function of a level and a message"):
        etx_runtime.set_log_sink(3)  # type: ignore[arg-type]


def test_a_sink_that_raises_is_reported(
    runtime: Runtime, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda hook: seen.append(hook.exc_type))
    etx_runtime.set_log_level("info")
    etx_runtime.set_log_sink(lambda level, text: 1 / 0)
    try:
        runtime.load_program(addition())
    finally:
        etx_runtime.set_log_sink(None)
    assert seen == [ZeroDivisionError]
    runtime.load_program(addition())
    etx_runtime.set_log_level("fatal")
    assert "etx I: a program: loaded" in capfd.readouterr().err


def test_a_sink_does_not_replace_itself(runtime: Runtime) -> None:
    seen: list[str] = []
    refused: list[Exception] = []

    def sink(level: str, text: str) -> None:
        seen.append(text)
        for other in (None, print):
            try:
                etx_runtime.set_log_sink(other)
            except etx_runtime.RuntimeFailure as error:
                refused.append(error)

    etx_runtime.set_log_sink(sink)
    etx_runtime.set_log_level("info")
    try:
        for _ in range(2):
            runtime.load_program(addition())
    finally:
        etx_runtime.set_log_sink(None)
        etx_runtime.set_log_level("fatal")
    assert (len(seen), len(refused)) == (2, 4)
