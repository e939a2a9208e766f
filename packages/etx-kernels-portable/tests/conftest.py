# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER / "support")]
sys.path.append(str(FOLDER.parents[1] / "etx-runtime" / "tests"))  # `building`
torch.set_num_threads(1)

LAST = (
    "test_every_call_again",
    "test_integer_calls_return_the_same_at_every_level",
    "test_every_call_enlarged",
)
DRAWN = 500
SWEEP = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    seed = random.SystemRandom().randrange(10**6)
    parser.addoption("--seed", type=int, default=seed, help="draws samples; random by default")
    group = parser.getgroup(
        "kernels", "another plugin's kernels: test_ops.py --plugin X --target Y"
    )
    group.addoption("--plugin", type=Path, help="the shared library whose kernels are tested")
    group.addoption("--target", type=Path, help="the JSON file that lists its operators")
    group.addoption("--cases", type=Path, help="a Python file with CASES for its own operators")
    parser.addoption("--sweep-seed", type=int, default=SWEEP, help="draws odd calls and sizes")


def pytest_configure(config: pytest.Config) -> None:
    plugin, target = (config.getoption(name) for name in ("plugin", "target"))
    if (plugin is None) != (target is None):
        raise pytest.UsageError("--plugin and --target go together: what a plugin's kernels take")
    if plugin is not None:
        from provider import PROVIDER

        PROVIDER.library, PROVIDER.target = str(plugin), str(target)
        PROVIDER.cases = config.getoption("cases")


def pytest_report_header(config: pytest.Config) -> str:
    seed, sweep = config.getoption("seed"), config.getoption("sweep_seed")
    return f"samples drawn by --seed {seed}, sweeps by --sweep-seed {sweep}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "drawn" in metafunc.fixturenames:
        first = metafunc.config.getoption("seed") * DRAWN
        metafunc.parametrize("drawn", range(first, first + DRAWN))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the tests of what all others called last, and only in a run of all."""
    files = {item.path for item in items}
    whole = files >= set(FOLDER.glob("test_*.py")) and not config.getoption("keyword")
    chosen, left = [], []
    for item in items:
        is_last = item.name in LAST
        (left if is_last and not whole else chosen).append(item)
    items[:] = sorted(chosen, key=lambda item: item.name in LAST)
    config.hook.pytest_deselected(items=left)
