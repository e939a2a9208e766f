#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write docs/passes.md: the passes in their order, each with its equation.

With --check, nothing is written: exit 1 if the page is stale.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from etx_exir.passes import PIPELINE, Pass
from etx_exir.passes.integer import INTEGER

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


def page() -> str:
    """Return the page; a pass that runs again is named where it ran first."""
    general = dict.fromkeys(type(item) for item in PIPELINE)
    integer = [kind for item in INTEGER if (kind := type(item)) not in general]
    return HEAD + listed(general) + BETWEEN + listed(integer)


def listed(kinds: Iterable[type[Pass]]) -> str:
    """Return a numbered line for each pass."""
    return "".join(
        f"{index}. `{kind.__module__.rsplit('.', 1)[-1]}`: {kind.equation()}\n"
        for index, kind in enumerate(kinds, 1)
    )


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        print(f"{PAGE} is stale: run python3 noxfile.py -t gen", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
