# SPDX-License-Identifier: BSD-3-Clause
"""TOSA's reference model, a process in an environment of its own: its pins do not fit ours."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import venv
from functools import cache
from pathlib import Path

import numpy as np

TOSA_TOOLS = "tosa-tools==2026.8.0"
SCRIPT = """
import os
import sys
import numpy as np
import tosa_reference_model
answers = open(os.dup(1), "w")  # what the model itself prints comes in parts of lines
for line in sys.stdin:
    graph, given, made, said = line.rstrip("\\n").split("\\t")
    log = os.open(said, os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    inputs = np.load(given)
    arrays = [inputs[k] for k in inputs.files]
    outputs, status = tosa_reference_model.run(open(graph, "rb").read(), arrays)
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        sys.exit(f"the reference model says {status}")
    np.savez(made, *outputs)
    print("done", file=answers, flush=True)
"""


def interpreter() -> Path:
    """Return a Python with tosa-tools, from ETX_TOSA_PYTHON or a cached environment."""
    given = os.environ.get("ETX_TOSA_PYTHON")
    if given:
        return Path(given)
    folder = Path(tempfile.gettempdir()) / f"etx-{TOSA_TOOLS}-py{sys.version_info[1]}-{os.getuid()}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", TOSA_TOOLS], check=True)
        (folder / "ready").touch()
    return python


@cache
def _process() -> subprocess.Popen[str]:
    """Return a process that runs one graph a line: to start it takes longer than most graphs."""
    command = [str(interpreter()), "-c", SCRIPT]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    )
    atexit.register(process.communicate)
    return process


def run(graph: bytes, *inputs: np.ndarray) -> list[np.ndarray]:
    """Run a TOSA file on arrays in the order of its inputs.

    Those of bfloat16 are given as int16, and made as V2.
    """
    with tempfile.TemporaryDirectory() as folder:
        names = ("graph.tosa", "inputs.npz", "outputs.npz", "said.txt")
        files = [Path(folder) / name for name in names]
        files[0].write_bytes(graph)
        np.savez(files[1], *inputs)
        process = _process()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\t".join(map(str, files)) + "\n")
        process.stdin.flush()
        if not process.stdout.readline():
            _process.cache_clear()
            raise AssertionError(files[3].read_text())
        outputs = np.load(files[2])
        return [outputs[key] for key in outputs.files]
