# SPDX-License-Identifier: BSD-3-Clause
import gc
import random
from collections import defaultdict

HALF_ROWS = 24


def pytest_addoption(parser):
    group = parser.getgroup("sweeps")
    text = "at most so many float16 rows of a test, 0: all"
    group.addoption("--half-rows", type=int, default=HALF_ROWS, help=text)
    seed = random.SystemRandom().randrange(10**6)
    group.addoption("--rows-seed", type=int, default=seed, help="draws them; random by default")


def pytest_report_header(config):
    rows, seed = config.getoption("half_rows"), config.getoption("rows_seed")
    return f"{rows or 'all'} float16 rows of a test, drawn by --rows-seed {seed}"


def pytest_collection_finish():
    gc.freeze()  # torch's modules: the collector walks them again and again


def pytest_collection_modifyitems(config, items):
    """Draw float16 rows, in a run that names none: their float32 twins all run.

    Tests of the same rows are given the same ones, which are lowered once.
    """
    rows = config.getoption("half_rows")
    if not rows or config.getoption("keyword") or any("::" in text for text in config.args):
        return
    tests = defaultdict(dict)
    for item in items:
        name, _, row = item.nodeid.partition("[")
        if row.startswith("half_"):
            tests[name][row] = item
    dropped = set()
    for test in tests.values():
        draw = random.Random(config.getoption("rows_seed"))
        left = draw.sample(sorted(test), max(len(test) - rows, 0))
        dropped.update(test[row] for row in left)
    config.hook.pytest_deselected(items=list(dropped))
    items[:] = [item for item in items if item not in dropped]
