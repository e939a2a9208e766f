# SPDX-License-Identifier: BSD-3-Clause
"""Callbacks and the terminal are told of every step; nothing is shown of short work."""

import io
import sys
import time

import pytest
import torch
from etx_exir import Console, compile, to_edge, to_edge_transform_and_lower
from etx_exir.passes import PIPELINE
from etx_exir.progress import report, reporting
from programs import Calls

MODULE, INPUTS = Calls(lambda x: x + 1), (torch.ones(2),)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def without_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)


def test_every_step_is_reported(tmp_path):
    steps = []
    compile(MODULE, INPUTS, path=tmp_path / "net.pte", progress=lambda *step: steps.append(step))
    names = [name for name, _, _ in steps]
    passes = [f"forward: {item.name}" for item in PIPELINE]
    assert names == ["export", "forward: decompose", *passes, "plan memory and emit", "write"]
    assert steps[2] == (passes[0], 0, len(PIPELINE))
    assert steps[-3] == (passes[-1], len(PIPELINE) - 1, len(PIPELINE))


@pytest.mark.parametrize("lower", [to_edge, to_edge_transform_and_lower])
def test_methods_are_named(lower):
    steps = []
    program = torch.export.export(MODULE, INPUTS)
    manager = lower({"one": program, "two": program}, progress=lambda *step: steps.append(step))
    lowered = len(steps)
    assert {name.split(":")[0] for name, _, _ in steps} == {"one", "two"}
    manager.to_executorch()
    assert len(steps) == lowered
    manager.to_executorch(progress=lambda *step: steps.append(step))
    assert steps[lowered:] == [("plan memory and emit", 0, 1)]


def run(console, seconds=0.0, before=0.0, shown=None):
    """Report two steps, `seconds` apart, or as soon as the terminal `shown` shows the first."""
    with console, reporting(console):
        time.sleep(before)
        report("first", 0, 2)
        time.sleep(seconds)
        deadline = time.monotonic() + 60
        while shown and "first" not in shown.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        report("second", 1, 2)


def test_short_work_shows_nothing():
    stream = Terminal()
    run(Console(stream=stream, patience=30.0))
    assert stream.getvalue() == ""


@pytest.mark.parametrize("before", [0.0, 0.2])
def test_long_work_shows_the_step_it_is_at_and_erases_it(before, without_rich):
    stream = Terminal()
    run(Console(stream=stream, patience=0.01), before=before, shown=stream)
    erase = "\r\x1b[2K"
    assert stream.getvalue() == f"{erase}first (1/2){erase}second (2/2){erase}"


def test_rich_shows_a_bar():
    stream = Terminal()
    run(Console(stream=stream, patience=0.01), shown=stream)
    assert "first" in stream.getvalue()
    assert "━" in stream.getvalue()


def test_no_terminal_shows_nothing_unless_told_to():
    stream = io.StringIO()
    run(Console(stream=stream, patience=0.0), 0.2)
    assert stream.getvalue() == ""
    run(Console("always", stream))
    lines = stream.getvalue().splitlines()
    assert [line.split("s  ")[1] for line in lines] == ["first (1/2)", "second (2/2)"]
    terminal = Terminal()
    run(Console("never", terminal, patience=0.0), 0.1)
    assert terminal.getvalue() == ""
