# SPDX-License-Identifier: BSD-3-Clause
"""Threads of Python on one program, and the threads that kernels share."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import etx_runtime
import numpy as np
import pytest
from etx_runtime import Runtime
from parallel import run_in_threads
from programs import Builder, loop


@pytest.fixture(autouse=True)
def default_threads() -> Iterator[None]:
    yield
    etx_runtime.set_num_threads(0)


def squares(most: int) -> bytes:
    """x * x + x for vectors of up to `most`."""
    b = Builder()
    x = b.input(b.tensor((most,), dynamic=True))
    squared, out = (b.tensor((most,), dynamic=True) for _ in range(2))
    b.call("aten::square.out", x, squared, squared)
    b.add(squared, x, out)
    b.output(out)
    return b.serialize()


def test_eight_threads_on_one_program(runtime: Runtime) -> None:
    program = runtime.load_program(squares(4000))
    failures: list[int] = []

    def work(number: int) -> None:
        run = program.load_method("forward")
        for turn in range(200):
            x = np.full(100 * (number + 1) + turn, number, np.float32)
            if not np.array_equal(run.execute([x])[0], x * x + x):
                failures.append(number)
            etx_runtime.set_num_threads(1 + (number + turn) % 4)
            if turn % 50 == 0:
                run = program.load_method("forward")

    run_in_threads(work)
    assert failures == []


def test_execution_releases_the_interpreter(runtime: Runtime) -> None:
    run = runtime.load_program(loop(3_000_000)).load_method("forward")
    run.set_instruction_budget(10**9)
    thread = threading.Thread(target=lambda: run.execute([]))
    turns = 0
    thread.start()
    while thread.is_alive():
        turns += 1
    assert turns > 1000


def test_one_method_is_not_for_two_threads(runtime: Runtime) -> None:
    run = runtime.load_program(loop(300_000)).load_method("forward")
    results: list[object] = []
    refused: list[str] = []

    def work(_: int) -> None:
        try:
            results.extend(run.execute([]))
        except etx_runtime.RuntimeFailure as error:
            refused.append(str(error))

    run_in_threads(work)
    assert len(results) + len(refused) == 8
    assert set(results) == {300_000}
    assert all("load it once a thread" in message for message in refused)


@pytest.mark.parametrize("count", [-1, 1025])
def test_number_of_threads_out_of_range(count: int) -> None:
    with pytest.raises(ValueError, match=f"expected 0 to 1024 threads, got {count}"):
        etx_runtime.set_num_threads(count)


def test_environment_sets_the_default() -> None:
    code = "import etx_runtime\nprint(etx_runtime.get_num_threads())"
    environment = {**os.environ, "ETX_NUM_THREADS": "5"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "5\n"


CHILDREN = """
import multiprocessing, sys
import etx_runtime
import numpy as np

etx_runtime.Runtime.get().load_plugin(sys.argv[1])
etx_runtime.set_num_threads(4)
method = etx_runtime.Runtime.get().load_program(sys.argv[2]).load_method("forward")

def work(number):
    x = np.full(4000, number, np.float32)
    return float(method.execute([x])[0].sum()), etx_runtime.get_num_threads()

assert work(2) == (6 * 4000, 4)
with multiprocessing.get_context("fork").Pool(2) as pool:
    results = pool.map_async(work, range(8)).get(timeout=30)
assert results == [((n * n + n) * 4000.0, 4) for n in range(8)], results
"""


def test_forked_children(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "squares.pte").write_bytes(squares(4000))
    command = [sys.executable, "-W", "ignore", "-c", CHILDREN, plugin, tmp_path / "squares.pte"]
    environment = {**os.environ, "ETX_PLUGINS": ""}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.returncode == 0, done.stderr
