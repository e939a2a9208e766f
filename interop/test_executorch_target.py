# SPDX-License-Identifier: BSD-3-Clause
"""What ExecuTorch's kernels compute otherwise than eager, the target respells or refuses."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

OPINFO = Path(__file__).parent / "opinfo"
REFUSED = (
    "2 to ",
    "layer_norm float64",
    "log_softmax of nothing",
    "orders of transposed",
    "power of int",
    "power of uint8",
)


@pytest.fixture(scope="module")
def happened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """Return what became of each call, by name."""
    run = runpy.run_path(str(OPINFO / "run.py"))["run"]
    host, executorch = (request.config.getoption(side) for side in ("--host", "--executorch"))
    path = tmp_path_factory.mktemp("odd") / "odd.samples"
    compiled = run(host, "-W", "ignore", "odd_calls.py", path)
    executed = run(executorch, "-W", "ignore", "execute.py", path)
    return {said[0][1]["op"]: ": ".join(executed.get(i, said)[-1]) for i, said in compiled.items()}


def test_odd_calls_give_what_eager_gives_or_are_refused(happened: dict[str, str]) -> None:
    assert len(happened) > 200
    expected = {name: "refused" if name.startswith(REFUSED) else "same" for name in happened}
    assert {
        name: what for name, what in happened.items() if what.partition(":")[0] != expected[name]
    } == {}
