# SPDX-License-Identifier: BSD-3-Clause
"""Measure each instruction of a file on this machine."""

from __future__ import annotations

import statistics
import time

from etx_schema import EtxError

__all__ = ["measure"]

SECONDS = 1.0
FEWEST, MOST = 3, 200


def measure(path: str) -> dict[str, list[float]]:
    """Return median milliseconds of each instruction by method, for random inputs.

    Each includes two readings of the clock. Needs etx-runtime.
    """
    try:
        from etx_runtime import Runtime
        from etx_runtime.commands.samples import InputOptions, prepare_calls
    except ImportError as error:
        raise EtxError(f"--run needs etx-runtime and etx-kernels-portable ({error})") from error
    program = Runtime.get().load_program(path)
    found: dict[str, list[float]] = {}
    for name in sorted(program.method_names):
        method = program.load_method(name)
        (inputs,) = prepare_calls(method, InputOptions())
        spans: dict[int, list[float]] = {}
        end = time.monotonic() + SECONDS
        runs = 0
        while runs < FEWEST or (runs < MOST and time.monotonic() < end):
            once: dict[int, float] = {}
            for index, _, nanoseconds in method.profile(inputs)[1]:
                once[index] = once.get(index, 0.0) + nanoseconds / 1e6
            for index, milliseconds in once.items():
                spans.setdefault(index, []).append(milliseconds)
            runs += 1
        count = max(spans, default=-1) + 1
        found[name] = [statistics.median(spans.get(i, [0.0])) for i in range(count)]
    return found
