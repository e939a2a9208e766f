# SPDX-License-Identifier: BSD-3-Clause
"""What ETX itself costs: a call from Python above the execution, and verifying a file.

usage: costs.py SMALL.pte FILE.pte

SMALL takes two float32 tensors of 2 x 3. What is compared is measured in turns of one process; the
figures are medians over the turns of the difference within a turn. An execution in C++ is timed by
reading the clock around it, which is in its time; calls from Python are timed by the thousand.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from etx_runtime import Runtime, Verification, load

TURNS = 41
CALLS = 1000


def each(call: Callable[[], object], count: int) -> float:
    """Return the nanoseconds of one of `count` calls."""
    begin = time.perf_counter_ns()
    for _ in range(count):
        call()
    return (time.perf_counter_ns() - begin) / count


def median_of(difference: Callable[[], float]) -> float:
    """Return the median over the turns; the first warms up."""
    return statistics.median([difference() for _ in range(TURNS + 1)][1:])


def main(small: str, file: str) -> None:
    """Print a line for each cost."""
    x = np.ones((2, 3), np.float32)
    method = Runtime.get().load_program(small).load_method("forward")
    model = load(small)
    caller = method.flat_caller()
    ways: dict[str, Callable[[], object]] = {
        "forward(x, x)": lambda: model.forward(x, x),
        "execute([x, x])": lambda: method.execute([x, x]),
        "flat_caller()(x, x)": lambda: caller(x, x),
    }
    nothing = each(lambda: None, 100 * CALLS)
    for name, way in ways.items():

        def above(way: Callable[[], object] = way) -> float:
            inner = statistics.median(method.time_executions([x, x], CALLS))
            return each(way, CALLS) - nothing - inner

        print(f"{name} costs {median_of(above):.0f} ns above the execution in C++")
    runtime = Runtime.get()

    def verification() -> float:
        fully = each(lambda: runtime.load_program(file), 20)
        hardly = each(lambda: runtime.load_program(file, verification=Verification.Minimal), 20)
        return fully - hardly

    print(f"verifying {Path(file).name} costs {median_of(verification) / 1e3:.1f} µs")


if __name__ == "__main__":
    main(*sys.argv[1:])
