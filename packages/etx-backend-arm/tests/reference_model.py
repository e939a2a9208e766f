# SPDX-License-Identifier: BSD-3-Clause
"""TOSA's reference model, a process in an environment of its own: its pins do not fit ours."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numpy as np

TOSA_TOOLS = "tosa-tools==2026.8.0"
SCRIPT = """
import sys
import numpy as np
import tosa_reference_model
graph = open(sys.argv[1], "rb").read()
inputs = np.load(sys.argv[2])
outputs, status = tosa_reference_model.run(graph, [inputs[k] for k in inputs.files])
if status != tosa_reference_model.GraphStatus.TOSA_VALID:
    sys.exit(f"the reference model says {status}")
np.savez(sys.argv[3], *outputs)
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


def run(graph: bytes, *inputs: np.ndarray) -> list[np.ndarray]:
    """Run a TOSA file on arrays in the order of its inputs."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "graph.tosa").write_bytes(graph)
        np.savez(base / "inputs.npz", *inputs)
        command = [interpreter(), "-c", SCRIPT]
        files = [base / name for name in ("graph.tosa", "inputs.npz", "outputs.npz")]
        result = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        outputs = np.load(base / "outputs.npz")
        return [outputs[key] for key in outputs.files]
