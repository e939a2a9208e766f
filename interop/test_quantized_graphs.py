# SPDX-License-Identifier: BSD-3-Clause
"""Random quantized models agree on all targets; `nox -s quantized-graphs` draws hundreds."""

from __future__ import annotations

import pytest
from forked import call


@pytest.mark.parametrize(
    ("script", "count", "what"),
    [("quantized_graphs.py", 10, "models"), ("quantized_nets.py", 5, "nets")],
)
def test_targets_agree(script: str, count: int, what: str, request: pytest.FixtureRequest) -> None:
    printed = call(request.config, "--both", script, count, 0)
    assert f"{count} {what} from seed 0, 0 findings" in printed
