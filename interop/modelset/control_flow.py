# SPDX-License-Identifier: BSD-3-Clause
"""Programs with control flow: those of the compiler's own tests, by name, and random ones."""

from __future__ import annotations

import sys
from pathlib import Path

from .built import Built

sys.path.append(str(Path(__file__).parents[2] / "packages" / "etx-exir" / "tests"))

from flows import FLOWS
from random_programs import ALL, seeded_program

RANDOM = "random"


def build(name: str) -> Built:
    """Build `name`, or for ``random<seed>`` the program of a seed; odd ones are without loops.

    ExecuTorch's exporter refuses loops, so that odd seeds are what it can take part with.
    """
    if name in FLOWS:
        program = FLOWS[name]()
    else:
        seed = int(name.removeprefix(RANDOM))
        operators = tuple(o for o in ALL if o != "loop") if seed % 2 else ALL
        program = seeded_program(seed, operators)
    return Built(program.module, program.calls[0], program.calls, program.dynamic_shapes)
