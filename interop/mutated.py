# SPDX-License-Identifier: BSD-3-Clause
"""Change bytes of small files of ExecuTorch, run them on both runtimes, and count what happens.

usage: mutated.py DEVICE EXECUTORCH [ROUNDS] [FOLDER]

DEVICE and EXECUTORCH are interpreters. Bytes change in the program, not in its stored tensors: a
weight may be any number. Prints a table, and each file that gives other results than before.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
FILES = HERE.parent / "packages" / "etx-runtime" / "tests" / "executorch"
NAMES = ("add", "state", "cat_topk", "branch", "dynamic")
KINDS = ("error", "same", "different", "crash", "hang")
Result = tuple[str, str]


def mutate(file: bytes, seed: str) -> bytes:
    """Set one to four bytes of the flatbuffer to any value."""
    chosen = random.Random(seed)
    data = bytearray(file)
    program_size = min(int.from_bytes(file[16:24], "little"), len(file))
    for _ in range(chosen.randint(1, 4)):
        data[chosen.randrange(program_size)] = chosen.randrange(256)
    return bytes(data)


def run(python: str, runtime: str, paths: list[Path]) -> dict[Path, Result]:
    """Return what happened to each file; a process that dies is started again with the next one."""
    clean = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "PYTHONPATH"}}
    clean |= {k: v for k, v in os.environ.items() if k.startswith("ETX_")}
    results: dict[Path, Result] = {}
    while left := [path for path in paths if path not in results]:
        command = [python, "-W", "ignore", "attempt.py", runtime, *map(str, left)]
        done = subprocess.run(command, cwd=HERE, env=clean, capture_output=True, check=False)
        for line in done.stdout.decode(errors="replace").splitlines():
            if line.startswith("["):
                path, what, detail = json.loads(line)
                results[Path(path)] = (what, detail)
        if done.returncode >= 0 and len(results) < len(paths):
            sys.exit(done.stderr.decode(errors="replace"))
        if done.returncode < 0:
            kind = "hang" if done.returncode == -signal.SIGALRM else "crash"
            died = next(path for path in paths if path not in results)
            results[died] = (kind, signal.Signals(-done.returncode).name)
    return results


def main(device: str, executorch: str, rounds: int, folder: Path) -> None:
    """Make the files, run them, print the table."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in NAMES:
        file = (FILES / f"{name}.pte").read_bytes()
        for i in range(rounds + 1):
            path = folder / f"{name}.{i}.pte"
            path.write_bytes(mutate(file, f"{name} {i}") if i else file)
            paths.append(path)
    outcomes: dict[str, dict[Path, str]] = {}
    for runtime, python in (("etx", device), ("executorch", executorch)):
        results = run(python, runtime, paths)
        outcomes[runtime] = {}
        for path, (what, detail) in results.items():
            if path.name.split(".")[1] == "0":
                assert what == "ran", f"{path.name} on {runtime}: {detail}"
                continue
            whole = results[path.with_name(f"{path.name.split('.')[0]}.0.pte")]
            ran = "same" if detail == whole[1] else "different"
            outcomes[runtime][path] = ran if what == "ran" else what
        counts = Counter(outcomes[runtime].values())
        print(f"{runtime:12}", *(f"{kind} {counts[kind]:4}" for kind in KINDS), sep="  ")
    for path in outcomes["etx"]:
        ours, theirs = outcomes["etx"][path], outcomes["executorch"][path]
        if {ours, theirs} & {"different", "crash", "hang"}:
            print(f"{path.name}: etx {ours}, executorch {theirs}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        where = Path(sys.argv[4]) if len(sys.argv) > 4 else Path(temporary)
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 90, where)
