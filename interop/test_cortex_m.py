# SPDX-License-Identifier: BSD-3-Clause
"""Our kernels of ``cortex_m::`` compute what ExecuTorch's definitions in Python do, bit by bit."""

from __future__ import annotations

import json

from forked import call

EXAMPLES = 12
OPERATORS = 23


def test_drawn_calls_give_the_same_bits(request):
    printed = call(request.config, "--both", "cortex_m.py", EXAMPLES)
    found = json.loads(printed.splitlines()[-1])
    assert len(found) == OPERATORS
    for name, row in found.items():
        assert row["ran"] >= EXAMPLES, (name, row)
        assert row["undefined"] == 0, (name, row)
        assert not row["differ"], (name, row)
