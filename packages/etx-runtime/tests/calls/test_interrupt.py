# SPDX-License-Identifier: BSD-3-Clause
"""Executions that end before their end: cancelled by another thread, or by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import HERE
from etx_runtime import ExecutionError, Runtime
from programs import loop

CANCELLED = 0x40
BUDGET = 10**15

CHILD = """
import signal, sys, threading
import etx_runtime
from programs import loop

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
{before}
runtime = etx_runtime.Runtime.get()
runtime.load_plugin(sys.argv[1])
method = runtime.load_program(loop(10**15)).load_method("forward")
method.set_instruction_budget(10**15)
try:
    print("started", flush=True)
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    method.set_instruction_budget(1000)
    try:
        method.execute([])
    except etx_runtime.ExecutionError as error:
        print(hex(error.code), flush=True)
"""


def test_another_thread_cancels(runtime: Runtime) -> None:
    method = runtime.load_program(loop(10**15)).load_method("forward")
    method.set_instruction_budget(BUDGET)
    timer = threading.Timer(0.2, method.cancel)
    start = time.monotonic()
    timer.start()
    with pytest.raises(ExecutionError, match="ancelled") as caught:
        method.execute([])
    assert caught.value.code == CANCELLED
    assert 0.1 < time.monotonic() - start < 10
    method.cancel()
    with pytest.raises(ExecutionError, match="ancelled"):
        method.execute([])
    method.set_instruction_budget(1000)
    with pytest.raises(ExecutionError, match="budget"):
        method.execute([])


def interrupted(plugin: Path, call: str, before: str = "") -> str:
    """Send SIGINT to a child that executes without end; return what it prints afterwards."""
    paths = os.pathsep.join([str(HERE), *(path for path in sys.path if path)])
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(call=call, before=before), str(plugin)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, "ETX_PLUGINS": "", "ETX_PLUGIN_PATHS": ""},
    )
    with child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "started\n"
            time.sleep(0.3)
            child.send_signal(signal.SIGINT)
            return child.communicate(timeout=20)[0]
        finally:
            child.kill()


@pytest.mark.parametrize("call", ["method.execute([])", "method.time_executions([], 3)"])
def test_ctrl_c_raises_keyboard_interrupt(plugin: Path, call: str) -> None:
    """The method is usable afterwards: its next execution ends by its budget (0x25)."""
    assert interrupted(plugin, call).split() == ["interrupted", "0x25"]


def test_a_handler_of_the_users_own_decides(plugin: Path) -> None:
    """It is not Python's own, so that the execution goes on and ends by its budget."""
    before = "signal.signal(signal.SIGINT, lambda *_: print('handled', flush=True))"
    call = "method.set_instruction_budget(5 * 10**7); method.execute([])"
    text = interrupted(plugin, call, before)
    assert "interrupted" not in text
    assert "handled" in text
    assert "budget is used up" in text
