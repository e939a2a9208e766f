# SPDX-License-Identifier: BSD-3-Clause
"""The integer loops write the same bytes at each level of aarch64 as on x86-64.

Those of x86-64 are compared in packages/etx-kernels-portable/tests/test_sanitized.py.
"""

from __future__ import annotations

import os
import subprocess

import pytest
from machines import BUILDS, HERE, MACHINES, build_with

KERNELS = HERE.parents[1] / "packages" / "etx-kernels-portable"
DIGEST = "76856ae8e534f026"
"""As test_sanitized.py has it."""
OPTIONS = ("-DETX_KERNELS_STATIC=ON", "-DETX_KERNELS_TESTS=ON", "-DETX_KERNELS_FAMILIES=lookup")


@pytest.fixture(scope="module")
def command() -> list[str]:
    """How the program that compares the levels is started, without the processor."""
    (machine,) = (machine for machine in MACHINES if machine.name == "aarch64")
    folder = BUILDS / "integer-aarch64"
    build_with(machine, KERNELS, folder, ["-DCMAKE_BUILD_TYPE=Release", *OPTIONS], "every_integer")
    return [*machine.emulator, str(folder / "every_integer")]


@pytest.mark.parametrize(
    ("processor", "level", "ran"),
    [
        ("cortex-a57", "", []),
        ("neoverse-n1", "", ["dotprod"]),
        ("max", "", ["i8mm"]),
        ("max", "dotprod", ["dotprod"]),
        ("max", "base", []),
    ],
)
def test_every_level_writes_the_same(
    command: list[str], processor: str, level: str, ran: list[str]
) -> None:
    emulator, *arguments = command
    done = subprocess.run(
        [emulator, "-cpu", processor, *arguments],
        env={**os.environ, "ETX_KERNELS_ISA": level},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    base, digest, *levels = done.stdout.split()
    assert (base, digest, levels) == ("base", DIGEST, ran)
