# SPDX-License-Identifier: BSD-3-Clause
"""Lower one model with one exporter in a process of its own; print what it took as JSON.

usage: lower_once.py {etx,executorch} MODEL FILE

``seconds``: from the exported program to the written file, imports left out. ``decompose``: the
part of it within torch's ``ExportedProgram.run_decompositions``. ``grown_mb``: the peak of
resident memory above the process that holds the exported model and has not imported the exporter.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "interop"))

from lower import EXPORTERS
from modelset import BUILDERS

PACKAGES = {
    "etx": ("etx_exir", "etx_exir.emit"),
    "executorch": ("executorch.exir", "executorch.exir.passes.init_mutable_pass"),
}


class Stopwatch:
    """Sums the time within the outermost calls of a method that it is put around."""

    def __init__(self, owner: type, name: str) -> None:
        self.seconds = 0.0
        self.calls = 0
        self.depth = 0
        self.inner = getattr(owner, name)
        watch = self

        def timed(*args: Any, **kwargs: Any) -> Any:
            watch.depth += 1
            begin = time.perf_counter()
            try:
                return watch.inner(*args, **kwargs)
            finally:
                watch.depth -= 1
                if not watch.depth:
                    watch.calls += 1
                    watch.seconds += time.perf_counter() - begin

        setattr(owner, name, timed)


def resident(key: str) -> float:
    """Return a size from the kernel's account of this process, in megabytes of 10^6 bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(key + ":")]
    return int(line.split()[1]) * 1024 / 1e6


def main(exporter: str, model: str, path: Path) -> None:
    """Build, export, lower."""
    built = BUILDERS[model]()
    program = torch.export.export(built.module, built.example, dynamic_shapes=built.dynamic_shapes)
    sizes = {id(t): t.nbytes for t in (*program.state_dict.values(), *program.constants.values())}
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    for package in PACKAGES[exporter]:
        importlib.import_module(package)
    watch = Stopwatch(torch.export.ExportedProgram, "run_decompositions")
    begin = time.perf_counter()
    with torch.no_grad():
        EXPORTERS[exporter](program, path)
    seconds = time.perf_counter() - begin
    result = {
        "seconds": seconds,
        "decompose": watch.seconds,
        "grown_mb": resident("VmHWM") - before,
        "weights_mb": sum(sizes.values()) / 1e6,
        "file_mb": path.stat().st_size / 1e6,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
