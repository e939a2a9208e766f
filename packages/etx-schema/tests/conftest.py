# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from etx_schema import cli
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("any clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any clock")
DATA = Path(__file__).parent / "data"


@pytest.fixture
def data() -> Path:
    return DATA


@pytest.fixture
def etx(capsys):
    def run(*arguments):
        code = cli.main([str(each) for each in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def installed(monkeypatch):
    """Pretend that packages with entry points are installed."""
    entries: list[EntryPoint] = []

    def find(group):
        return [entry for entry in entries if entry.group == group]

    monkeypatch.setattr("etx_schema.entry_points.entries", find)
    return entries


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "exported" in metafunc.fixturenames:
        paths = sorted(DATA.glob("*.pte"))
        metafunc.parametrize("exported", paths, ids=[path.stem for path in paths])
