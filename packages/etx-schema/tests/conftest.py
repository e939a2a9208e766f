# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

DATA = Path(__file__).parent / "data"


@pytest.fixture
def data() -> Path:
    return DATA


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "exported" in metafunc.fixturenames:
        paths = sorted(DATA.glob("*.pte"))
        metafunc.parametrize("exported", paths, ids=[path.stem for path in paths])
