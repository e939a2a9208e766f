# SPDX-License-Identifier: BSD-3-Clause
"""Run a method with and without recording, in turns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from etx_runtime import Recorder
from etx_runtime.runtime import Method

from etx_devtools.etdump import Run, read_etdump

BLOCKS = 10


@dataclass
class Recorded:
    """A method with its inputs; what was recorded of it, and milliseconds of other executions.

    `recorder` may hold the load already; it is cleared in between, so that its memory is one that
    was written before.
    """

    method: Method
    recorder: Recorder
    inputs: list[Any]
    runs: list[Run] = field(default_factory=list)
    untraced_ms: list[float] = field(default_factory=list)
    first_ms: float = 0.0
    cost_ms: float = 0.0
    inner_cost_ms: float = 0.0
    """What recording an instruction takes, and an event within a delegate."""

    def record(self, count: int) -> None:
        """Execute without recording, then with it, each so often."""
        times = self.method.time_executions(self.inputs, count)
        self.untraced_ms += [ns / 1e6 for ns in times]
        self.method.trace(self.inputs, self.recorder, count)
        self.runs += read_etdump(self.recorder.etdump())
        self.recorder.clear()


def record(methods: Sequence[Recorded], executions: int) -> None:
    """Record so many executions of each method and as many others, the methods in turns.

    What recording takes is measured before: it makes the clock as fast as it becomes.
    """
    cost, inner = Recorder.cost_ns() / 1e6, Recorder.inner_cost_ns() / 1e6
    for each in methods:
        each.cost_ms, each.inner_cost_ms = cost, inner
        start = time.perf_counter()
        each.method.execute(each.inputs)
        each.first_ms = (time.perf_counter() - start) * 1e3
    for block in range(BLOCKS):
        count = executions * (block + 1) // BLOCKS - executions * block // BLOCKS
        for each in methods if count else ():
            each.record(count)
