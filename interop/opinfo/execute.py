# SPDX-License-Identifier: BSD-3-Clause
"""Execute compiled samples on ExecuTorch's runtime; two lines of JSON for each.

usage: execute.py FILE.samples [--after N]

A line has the sample's number, what happened (it is begun, then how it ended), and details. What
ends the process is found by the driver: it was begun last; the next process goes on `--after` it.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import sys
import tempfile
from collections.abc import Iterator
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


def rows(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield what write.py wrote."""
    with open(path, "rb") as stream:
        while stream.peek(1):
            yield pickle.load(stream)


def main(path: str, after: int) -> None:
    """Execute the samples of a file that come after the given one."""
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    log = Log()
    for i, row in rows(path):
        if i <= after or row["state"] != "written":
            continue
        print(json.dumps([i, "begun", ""]), file=lines)
        signal.alarm(SECONDS)
        what, detail = execute(row)
        signal.alarm(0)
        reason = log.taken()
        detail = f"{detail} | {reason}" if what != "same" and reason else detail
        print(json.dumps([i, what, detail]), file=lines)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[3]) if sys.argv[2:] else -1)
