# SPDX-License-Identifier: BSD-3-Clause
"""Time `etx compare` as a user calls it, and its peak memory: `compared_command.py [MODEL]`.

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

from etx_exir import compile as compile_model
from modelset import build

HERE = Path(__file__).parent
FACTORY = """\
from modelset import build


def net():
    made = build({name!r})
    return made.module, tuple(made.example)
"""
START = "import resource, {imports}; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
IMPORTED = "torch, etx_devtools.compare.files, net; net.net()"


def main(name: str = "mobilenet_v2") -> int:
    """Print wall and CPU seconds, and megabytes above a process with only torch and the model."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "net.py").write_text(FACTORY.format(name=name))
        built = build(name)
        compile_model(built.module, tuple(built.example), path=Path(folder) / "net.pte")
        path = os.pathsep.join((str(HERE), folder, os.environ.get("PYTHONPATH", "")))
        environment = {**os.environ, "PYTHONPATH": path}
        python = [sys.executable, "-W", "ignore"]
        script = START.format(imports=IMPORTED)
        start = [*python, "-c", script]
        base = subprocess.check_output(start, cwd=folder, env=environment, text=True)
        words = ["compare", "net.pte", "--eager", "net.py:net", "--json"]
        before = time.perf_counter()
        done = subprocess.Popen(
            [*python, "-m", "etx_schema.cli", *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert done.stdout is not None
        document = json.loads(done.stdout.read())
        _, status, used = os.wait4(done.pid, 0)
        wall = time.perf_counter() - before
        megabytes = (used.ru_maxrss - int(base)) / 1024
        (call,) = document["calls"]
        print(
            f"{name}: {len(call['checks'])} results, {wall:.1f} s wall, "
            f"{used.ru_utime + used.ru_stime:.1f} s CPU; peak {used.ru_maxrss / 1024:.0f} MB, "
            f"{megabytes:.0f} MB above {int(base) / 1024:.0f} MB of torch with the model"
        )
        return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
