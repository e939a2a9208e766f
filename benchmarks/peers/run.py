# SPDX-License-Identifier: BSD-3-Clause
"""Run the peers' harness with ETX among its runners.

usage: run.py HARNESS WORK [ARGUMENTS OF ITS bench.py]

The harness is copied into WORK as it is; its table of runners gets ours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

RUNNER = Path(__file__).parent / "etx_runner.py"
ROWS = "\nimport etx_runner\nRUNNERS.update(etx_runner.RUNNERS)\n"


def main(harness: Path, work: Path, arguments: list[str]) -> int:
    """Copy, add the row, run."""
    if not (harness / "runners.py").exists():
        sys.exit(f"{harness} is not a harness: it has no runners.py")
    copy = work / "harness"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(harness, copy, copy_function=shutil.copyfile)
    shutil.copyfile(RUNNER, copy / RUNNER.name)
    with (copy / "runners.py").open("a") as file:
        file.write(ROWS)
    env = {**os.environ, "PEERS_WORK": str(work)}
    return subprocess.run([sys.executable, copy / "bench.py", *arguments], env=env).returncode


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:]))
