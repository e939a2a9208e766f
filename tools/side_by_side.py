# SPDX-License-Identifier: BSD-3-Clause
"""Runs commands side by side; what each prints is shown in one piece when it has ended."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed


def run_all(commands: Mapping[str, Sequence[object]], workers: int | None = None) -> list[str]:
    """Run every command, begun in their order, and return the names of those that failed.

    As many run at a time as there are cores, four at most, since they use several at times. Each
    is told its part of the cores by OMP_NUM_THREADS, and not to spin: threads of OpenMP that share
    a core with others spin while they wait, which took five times the work itself.
    """
    failed = []
    cores = os.cpu_count() or 1
    workers = workers or min(4, cores)
    shared = {"OMP_NUM_THREADS": str(max(1, cores // workers)), "OMP_WAIT_POLICY": "passive"}
    env = shared | os.environ
    with ThreadPoolExecutor(workers) as pool:
        running = [pool.submit(_run, name, command, env) for name, command in commands.items()]
        try:
            for done in as_completed(running):
                name, code, seconds, text = done.result()
                verdict = "passed" if code == 0 else f"failed with exit code {code}"
                print(f"{text.rstrip()}\n[{name}] {verdict} after {seconds:.0f} s", flush=True)
                if code:
                    failed.append(name)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return failed


def _run(
    name: str, command: Sequence[object], env: Mapping[str, str]
) -> tuple[str, int, float, str]:
    print(f"[{name}] begins", flush=True)
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        code = subprocess.call(
            [*map(str, command)],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        out.seek(0)
        return name, code, time.monotonic() - begin, out.read()
