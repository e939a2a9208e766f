#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write docs/passes.md: the passes in their order, each with its equation.

With --check, nothing is written: exit 1 if the page is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from etx_exir.passes import PIPELINE, Pass
from etx_exir.passes.fuse import WHOLE
from etx_exir.passes.integer import INTEGER
from etx_exir.passes.narrow import NARROW

from generated import write_or_check

PAGE = Path(__file__).resolve().parents[3] / "docs" / "passes.md"
HEAD = """# The passes

Every program goes through these passes, in this order (`etx_exir/passes/__init__.py`). Each is a
file that starts with its equation, is verified and compared with eager after it ran
(`tests/lower/test_pipeline.py`). Signs of zeros, infinities, NaN and the promotion of dtypes are
eager's (`tests/passes/test_exactness.py`); what goes into weights (batch norms, scales) and
attention, which becomes two products, round differently. [What they remove](passes-measured.md) of
the model set is measured by hand; this page is written by `python3 noxfile.py -t gen`.

"""

BETWEEN = """
What no backend took of a quantized program goes through these for a target that has the integer
operators (`etx_exir/passes/integer/`), as the default target `etx` does:

"""

LAST = """
And then, for a target that has attention as one operator, as `etx` does:

"""


HALF = """
With `--precision bf16`, at the end:

"""


def page() -> str:
    """Return the page; a pass that runs again is named where it ran first."""
    general = dict.fromkeys(type(item) for item in PIPELINE)
    integer, own, half = (
        [kind for item in items if (kind := type(item)) not in general]
        for items in (INTEGER, WHOLE, NARROW)
    )
    parts = ((HEAD, general), (BETWEEN, integer), (LAST, own), (HALF, half))
    return "".join(head + listed(kinds) for head, kinds in parts)


def listed(kinds: Iterable[type[Pass]]) -> str:
    """Return a numbered line for each pass."""
    return "".join(
        f"{index}. `{kind.__module__.rsplit('.', 1)[-1]}`: {kind.equation()}\n"
        for index, kind in enumerate(kinds, 1)
    )


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, {PAGE: page()}))
