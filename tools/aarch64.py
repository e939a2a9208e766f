# SPDX-License-Identifier: BSD-3-Clause
"""The task by hand that builds wheels for aarch64 and runs models on them."""

from __future__ import annotations

import sys

import nox

from sessions import COMPILER, DEVICE, ROOT, environment, run

WHEELS = (*DEVICE, "etx-backend-arm")


@nox.session(name="aarch64-wheels")
def aarch64_wheels(session: nox.Session) -> None:
    """Build wheels for aarch64 Linux, install them in an arm64 Python and run models. By hand.

    The wheels are left in .build/aarch64/wheels; Python is Debian's, run by qemu-aarch64.
    """
    folder = ROOT / ".build" / "aarch64"
    run(session, sys.executable, ROOT / "tools" / "cross.py", folder, *WHEELS)
    host = environment(
        session, "aarch64-host", COMPILER, "etx-quant", DEVICE[1], "etx-backend-arm[aot]"
    )
    script = ROOT / "interop" / "other_machine.py"
    run(session, host, "-W", "ignore", script, "make", folder / "models")
    python = ("qemu-aarch64", "-L", folder / "root", folder / "root" / "usr" / "bin" / "python3")
    run(session, *python, script, "run", folder / "models", PYTHONPATH=str(folder / "site"))
