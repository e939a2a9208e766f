# SPDX-License-Identifier: BSD-3-Clause
"""Execute compiled samples on ExecuTorch's runtime; a line of JSON for each.

usage: execute.py [--from N] FILE.samples...

A line has the number of the file's sample, what happened, and details. What a crash takes with
it is found by the driver: the line before is the last.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
from typing import Any

import executorch.kernels.quantized  # noqa: F401
import torch
from executorch.runtime import Runtime

SECONDS = 20
TOLERANCES = {
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
    torch.float32: 1e-4,
    torch.complex64: 1e-4,
    torch.float64: 1e-5,
}


class Log:
    """Takes what the runtime prints to standard error."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115
        os.dup2(self.file.fileno(), 2)

    def taken(self) -> str:
        """Return the reasons that were printed since the last time."""
        self.file.seek(0)
        text = self.file.read().decode(errors="replace")
        self.file.seek(0)
        self.file.truncate()
        lines = [re.sub(r"^\[[^]]*\] ?", "", line) for line in text.splitlines()]
        return " | ".join(line for line in lines if line.strip())[:600]


def execute(row: dict[str, Any]) -> tuple[str, str]:
    """Run one file; say whether it gives what eager gives."""
    try:
        method = Runtime.get().load_program(row["file"]).load_method("forward")
        assert method is not None
    except Exception as error:
        return "not loaded", str(error)
    try:
        found = method.execute([x.clone() for x in row["inputs"]])
    except Exception as error:
        return "error", str(error)
    actual = [torch.as_tensor(x).clone() for x in found if x is not None]
    expected = row["expected"]
    if len(actual) != len(expected):
        return "differs", f"{len(actual)} results, not {len(expected)}"
    for one, other in zip(actual, expected, strict=True):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return "differs", f"{one.dtype}{list(one.shape)}, not {other.dtype}{list(other.shape)}"
        why = difference(one, other) if row["values"] else ""
        if why:
            return "differs", why
    return "same", ""


def difference(one: torch.Tensor, other: torch.Tensor) -> str:
    """Return how far two tensors are from each other, nothing when that is within bounds."""
    bound = TOLERANCES.get(other.dtype, 0.0)
    try:
        torch.testing.assert_close(one, other, rtol=bound, atol=bound, equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return ""


def main(arguments: list[str]) -> None:
    """Execute the samples of all files from the given one of the first on."""
    log = Log()
    first = int(arguments[arguments.index("--from") + 1]) if "--from" in arguments else 0
    files = [a for a in arguments if a.endswith(".samples")]
    for path in files:
        for i, row in enumerate(torch.load(path, weights_only=False)):
            if i < first or row["state"] != "written":
                continue
            print(json.dumps([path, i, "begun", ""]), flush=True)
            signal.alarm(SECONDS)
            what, detail = execute(row)
            signal.alarm(0)
            reason = log.taken()
            detail = f"{detail} | {reason}" if what != "same" and reason else detail
            print(json.dumps([path, i, what, detail]), flush=True)
        first = 0


if __name__ == "__main__":
    main(sys.argv[1:])
