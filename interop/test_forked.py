# SPDX-License-Identifier: BSD-3-Clause
"""Scripts run in processes of their own, whatever becomes of the one before."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked import Nursery

SCRIPTS = {
    "prints.py": "import sys\nprint('fractions' in sys.modules, sys.argv[1:], __file__)",
    "leaves.py": "import sys\nsys.shared = 1\nsys.exit(3)",
    "aborts.py": "import os\nos.abort()",
    "raises.py": "import sys\nassert not hasattr(sys, 'shared')\nraise KeyError('absent')",
}


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    made = Nursery(sys.executable, ("fractions",))
    yield made
    made.end()


def test_each_ends_alone(nursery: Nursery, tmp_path: Path) -> None:
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text + "\n")

    def run(name: str, *words: str) -> tuple[int, str, str]:
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            code = nursery.run([str(tmp_path / name), *words], out, err)
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    assert run("leaves.py") == (3, "", "")
    assert run("aborts.py")[0] == -signal.SIGABRT
    code, printed, said = run("raises.py")
    assert (code, printed) == (1, "")
    assert "KeyError: 'absent'" in said
    expected = f"True ['a', 'b'] {tmp_path / 'prints.py'}\n"
    assert run("prints.py", "a", "b") == (0, expected, "")
