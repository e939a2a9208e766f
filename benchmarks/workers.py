# SPDX-License-Identifier: BSD-3-Clause
"""Benchmark processes: one model on one runtime."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

DTYPES = {"uint8": 0, "int8": 1, "int32": 3, "int64": 4, "float32": 6, "float64": 7, "bool": 11}


def write_inputs(folder: Path, arrays: list[np.ndarray]) -> Path:
    """Store arrays as raw files with a list of them, as ``native/worker.h`` reads it."""
    lines = []
    for i, array in enumerate(arrays):
        data = folder / f"input{i}.bin"
        data.write_bytes(np.ascontiguousarray(array).tobytes())
        sizes = " ".join(str(size) for size in array.shape)
        lines.append(f"{DTYPES[array.dtype.name]} {array.ndim} {sizes} {data}\n")
    path = folder / "inputs.txt"
    path.write_text("".join(lines))
    return path


class Worker:
    """A process that holds one loaded model and answers commands."""

    def __init__(self, binary: Path, model: Path, inputs: Path, libraries: list[Path]) -> None:
        self.process = subprocess.Popen(
            [binary, model, inputs, *libraries],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, command: str) -> Any:
        """Give the process one command and return its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args}: ended with {self.process.wait()}")
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
