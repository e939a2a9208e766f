# SPDX-License-Identifier: BSD-3-Clause
"""Scripts written for ExecuTorch run after its name was replaced, in either way of replacing it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))
WAYS = {"word": r"\bexecutorch\b", "everywhere": "executorch"}
QUICK = ("older_binding", "look_inside")
CASES = [(path, "word") for path in SCRIPTS]
CASES += [(path, "everywhere") for path in SCRIPTS if path.stem in QUICK]


@pytest.fixture(scope="module")
def nursery():
    """Run scripts in processes of their own: to import torch takes longer than most of them."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("nursery.py"))]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        process.stdin.close()


@pytest.mark.parametrize(("path", "way"), CASES, ids=lambda item: getattr(item, "stem", item))
def test_runs_after_replacing_one_word(path, way, nursery, tmp_path):
    script, printed = tmp_path / path.name, tmp_path / "printed"
    script.write_text(re.sub(WAYS[way], "etx_executorch", path.read_text()))
    print(json.dumps([*map(str, (script, tmp_path, printed))]), file=nursery.stdin, flush=True)
    code = nursery.stdout.readline().strip()
    assert code == "0", printed.read_text()
