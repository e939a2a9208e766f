# SPDX-License-Identifier: BSD-3-Clause
"""ETRecords and dumps cross: either Inspector says the same of either side's files."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SIDES = ("etx", "executorch")


@pytest.fixture(scope="module")
def read(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what each side reads: by reader, then by writer."""
    python = request.config.getoption("--both")
    folder = str(tmp_path_factory.mktemp("records"))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}

    def run(side: str, what: str) -> str:
        command = [python, "-W", "ignore", str(HERE / "etrecord.py"), side, what, folder]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for side in SIDES:
        run(side, "write")
    return {side: json.loads(run(side, "read").splitlines()[-1]) for side in SIDES}


@pytest.mark.parametrize("writer", SIDES)
def test_both_see_the_same_rows(read: Any, writer: str) -> None:
    ours, theirs = (read[side][writer] for side in SIDES)
    assert ours["handles"] == theirs["handles"]
    assert ours["programs"] == theirs["programs"] == [True, True]
    assert ours["rows"] == theirs["rows"]


def test_gaps_of_their_files(read: Any) -> None:
    ours, theirs = (read[side]["executorch"]["gaps"] for side in SIDES)
    assert [row[:2] for row in ours] == [row[:2] for row in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine[2] == pytest.approx(other[2], rel=1e-3, abs=1e-12)


def test_gaps_of_our_files(read: Any) -> None:
    """Theirs compares a convolution that took in its norm with the convolution."""
    rows = {row[1][0]: row for row in read["etx"]["etx"]["gaps"]}
    assert rows["native_call_convolution.out"][0][-1] == "batch_norm"
    assert max(row[2] for row in rows.values()) < 1e-10
    other = {row[1][0]: row for row in read["executorch"]["etx"]["gaps"]}
    assert other["native_call_linear.out"][2] < 1e-10


def test_etx_compare_runs_a_program_there(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    python = request.config.getoption("--both")
    (tmp_path / "net.py").write_text("from etrecord import sample as net\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    script = (
        "import sys, json; sys.path[:0] = sys.argv[1:3]\n"
        "from etx_exir import compile\n"
        "from etrecord import sample\n"
        "from etx_devtools.compare.elsewhere import Ran\n"
        "from etx_devtools.compare.files import compare_files\n"
        "compile(*sample(), path='net.pte')\n"
        "report = compare_files('net.pte', 'net.py:net', ran=Ran(executorch=sys.argv[3]))\n"
        "print(json.dumps(report.document()))\n"
    )
    command = [python, "-W", "ignore", "-c", script, str(HERE), str(tmp_path)]
    theirs = request.config.getoption("--executorch")
    done = subprocess.run(
        [*command, theirs], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout.splitlines()[-1])
    assert document["ran"] == "ExecuTorch"
    assert document["first"] is None
    (call,) = document["calls"]
    assert len(call["checks"]) >= 4
    assert all("made" in check for check in call["checks"])
