# SPDX-License-Identifier: BSD-3-Clause
"""Time `etx compare` as a user calls it, and its memory: `compared_command.py [--json] [MODEL]`.

A child process is the whole command: start, imports, export, execution, comparison, report.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from etx_exir import compile as compile_model
from modelset import build

HERE = Path(__file__).parent
FACTORY = """\
import torch
from modelset.vision import model_code

model_code()


def net():
    return torch.load("net.pt", weights_only=False)
"""
"""The model comes from a file: the set's own preparation of its weights is not the command's."""


RUN = """\
import sys, time
from pathlib import Path
from etx_schema.cli import main

code = main(sys.argv[1:])
peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
print(time.process_time(), int(peak) / 1024, file=sys.stderr)
sys.exit(code)
"""
"""What a parent knows of a child's memory begins with its own."""


def measure(name: str) -> tuple[dict[str, Any], int]:
    """Return what the command took with a model of the set, and its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "net.py").write_text(FACTORY)
        built = build(name)
        torch.save((built.module, tuple(built.example)), Path(folder) / "net.pt")
        compile_model(built.module, tuple(built.example), path=Path(folder) / "net.pte")
        path = os.pathsep.join((str(HERE), folder, os.environ.get("PYTHONPATH", "")))
        words = ["compare", "net.pte", "--eager", "net.py:net", "--json"]
        before = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", RUN, *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        wall = time.perf_counter() - before
    try:
        document, (cpu, peak) = json.loads(done.stdout), map(float, done.stderr.split())
    except ValueError:
        print(done.stdout, done.stderr, file=sys.stderr)
        raise
    checks = [check for call in document["calls"] for check in call["checks"]]
    found = {
        "model": name,
        "results": len(checks),
        "compared": sum("made" in check for check in checks),
        "wall_seconds": wall,
        "cpu_seconds": cpu,
        "peak_mb": peak,
    }
    return found, done.returncode


def main(words: list[str]) -> int:
    """Print what the command took, all of its process."""
    (name, *_) = [*(word for word in words if word != "--json"), "mobilenet_v2"]
    found, code = measure(name)
    if "--json" in words:
        print(json.dumps(found))
        return code
    print(
        f"{name}: {found['results']} results, {found['wall_seconds']:.1f} s wall, "
        f"{found['cpu_seconds']:.1f} s CPU; the process holds at most {found['peak_mb']:.0f} MB"
    )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
