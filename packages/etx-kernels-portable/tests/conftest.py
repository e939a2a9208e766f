# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))
torch.set_num_threads(1)

COVERAGE = "test_every_op_has_a_case"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the test of coverage last, and only in a run of all tests; leave out slow ones."""
    slow = "slow" in config.getoption("markexpr")
    files = {item.path for item in items}
    whole = files >= set(FOLDER.glob("test_*.py")) and not config.getoption("keyword")
    chosen, left = [], []
    for item in items:
        is_coverage = item.name == COVERAGE
        is_out = (is_coverage and not whole) or (not slow and "slow" in item.keywords)
        (left if is_out else chosen).append(item)
    items[:] = sorted(chosen, key=lambda item: item.name == COVERAGE)
    config.hook.pytest_deselected(items=left)
