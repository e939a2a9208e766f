# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))
torch.set_num_threads(1)

LAST = ("test_every_op_has_a_case", "test_every_call_again")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the tests of what all others called last, and only in a run of all; leave out slow
    ones."""
    slow = "slow" in config.getoption("markexpr")
    files = {item.path for item in items}
    whole = files >= set(FOLDER.glob("test_*.py")) and not config.getoption("keyword")
    chosen, left = [], []
    for item in items:
        is_last = item.name in LAST
        is_out = (is_last and not whole) or (not slow and "slow" in item.keywords)
        (left if is_out else chosen).append(item)
    items[:] = sorted(chosen, key=lambda item: item.name in LAST)
    config.hook.pytest_deselected(items=left)
