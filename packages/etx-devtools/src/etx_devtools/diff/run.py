# SPDX-License-Identifier: BSD-3-Clause
"""Run two files on the same inputs, in turns."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from etx_schema import EtxError

__all__ = ["run_both"]

SECONDS = 1.0
FEWEST, MOST = 5, 1000


def run_both(files: tuple[str, str], method: str | None = None) -> dict[str, Any]:
    """Return median milliseconds and the largest difference of each output, for random inputs.

    Without a `method` it is `forward` or the only one of each. `outputs` holds None for one that
    cannot be compared. Needs etx-runtime.
    """
    try:
        from etx_runtime.commands.expected import compare_tensor
        from etx_runtime.commands.measure import measure_load
        from etx_runtime.commands.samples import InputOptions, prepare_calls
    except ImportError as error:
        raise EtxError(f"--run needs etx-runtime and etx-kernels-portable ({error})") from error
    methods = [measure_load(path, [], method)[0] for path in files]
    (inputs,) = prepare_calls(methods[0], InputOptions())
    outputs = [methods[0].execute(inputs)]
    try:
        outputs.append(methods[1].execute(inputs))
    except EtxError as error:
        raise EtxError(
            f"--run gives both files the same inputs, and {files[1]} does not take those of "
            f"{files[0]}: {error}; leave out --run"
        ) from error
    differences: list[float | None] = []
    for info, one, other in zip(methods[0].outputs, *outputs, strict=False):
        row = compare_tensor(np.asarray(other), info.dtype or "", np.asarray(one), 0.0, 0.0)
        differences.append(row.get("largest_difference", 0.0 if row["matches"] else None))
    times: tuple[list[int], list[int]] = ([], [])
    end = time.monotonic() + SECONDS
    while len(times[0]) < FEWEST or (len(times[0]) < MOST and time.monotonic() < end):
        for each, spent in zip(methods, times, strict=True):
            spent += each.time_executions(inputs, 1)
    medians = [statistics.median(spent) / 1e6 for spent in times]
    return {"method": methods[0].metadata.name(), "milliseconds": medians, "outputs": differences}
