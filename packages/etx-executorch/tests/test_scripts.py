# SPDX-License-Identifier: BSD-3-Clause
"""Scripts written for ExecuTorch run after its name was replaced, in either way of replacing it."""

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


@pytest.mark.parametrize(("path", "way"), CASES, ids=lambda item: getattr(item, "stem", item))
def test_runs_after_replacing_one_word(path, way, tmp_path):
    script = tmp_path / path.name
    script.write_text(re.sub(WAYS[way], "etx_executorch", path.read_text()))
    command = [sys.executable, "-W", "ignore", str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
