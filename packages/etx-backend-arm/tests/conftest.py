# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import gc
import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

SEED = int(os.environ.get("ETX_SEED", "0"))
TURNS = ("dtype", "narrow", "number", "order", "profile", "spec")
"""Every other value of these runs with each value of the others, from ETX_SEED on."""

FEW = 6
"""So many rows of a test run at any time."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--by-hand", action="store_true", help="all values, not every other one")


def pytest_report_header(config: pytest.Config) -> str:
    return "all rows" if config.getoption("--by-hand") else f"rows in turns of ETX_SEED={SEED}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has no turn, in a run that names no test."""
    named = config.getoption("keyword") or any("::" in text for text in config.args)
    if config.getoption("--by-hand") or named:
        return
    tests: dict[str, dict[str, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        kind = {name: value for name, value in params(item).items() if name not in TURNS}
        tests[item.nodeid.partition("[")[0]][repr(kind)].append(item)
    left = set()
    for kinds in tests.values():
        if sum(map(len, kinds.values())) <= FEW:
            continue
        for number, rows in enumerate(kinds.values()):
            if len(rows) > 1 and len(kinds) > 1:
                left.update(rows[(number + SEED + 1) % 2 :: 2])
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


def params(item: pytest.Item) -> dict[str, object]:
    """Return what a test is parametrized with."""
    found: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    return found


def pytest_collection_finish() -> None:
    gc.freeze()  # torch's modules: the collector walks them again and again
