# SPDX-License-Identifier: BSD-3-Clause
"""Run a method with and without recording, in turns."""

from __future__ import annotations

import time
from typing import Any

from etx_runtime import Recorder
from etx_runtime.runtime import Method

from etx_devtools.etdump import Run, read_etdump

BLOCKS = 5


def record(
    method: Method, recorder: Recorder, inputs: list[Any], executions: int
) -> tuple[list[Run], list[float], float]:
    """Return what was recorded, milliseconds of executions in between, and of the first one.

    `recorder` may hold the load already; it is cleared in between, so that its memory is one that
    was written before. There are `executions` of each kind, at least one a block.
    """
    start = time.perf_counter()
    method.execute(inputs)
    first = (time.perf_counter() - start) * 1e3
    untraced: list[float] = []
    runs: list[Run] = []
    for block in range(BLOCKS):
        count = executions * (block + 1) // BLOCKS - executions * block // BLOCKS
        if count == 0:
            continue
        untraced += [ns / 1e6 for ns in method.time_executions(inputs, count)]
        method.trace(inputs, recorder, count)
        runs += read_etdump(recorder.etdump())
        recorder.clear()
    return runs, untraced, first
