# SPDX-License-Identifier: BSD-3-Clause
import gc
import random
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

from promise import SEED

ROWS = 3


def pytest_addoption(parser):
    group = parser.getgroup("sweeps")
    group.addoption("--rows", type=int, default=ROWS, help="at most so many of a test, 0: all")
    seed = random.SystemRandom().randrange(10**6)
    group.addoption("--rows-seed", type=int, default=seed, help="draws them; random by default")


def pytest_report_header(config):
    rows, seed = config.getoption("rows"), config.getoption("rows_seed")
    drawn = f"{rows} rows of a test at most, drawn by --rows-seed {seed}" if rows else "all rows"
    return f"samples and graphs drawn by ETX_SEED={SEED}; {drawn}"


def pytest_collection_modifyitems(config, items):
    """Draw rows of the tests that have more than `--rows`, in a run that names no test."""
    rows = config.getoption("rows")
    named = config.getoption("keyword") or any("::" in text for text in config.args)
    if not rows or named:
        return
    tests = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    draw = random.Random(config.getoption("rows_seed"))
    kept = set()
    for test in tests.values():
        kept.update(draw.sample(test, rows) if len(test) > rows else test)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_collection_finish():
    gc.freeze()  # torch's modules: the collector walks them again and again


@pytest.fixture(autouse=True)
def _seed():
    torch.default_generator.manual_seed(0)  # torch.manual_seed formats stacks, for GPUs
