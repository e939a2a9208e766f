# SPDX-License-Identifier: BSD-3-Clause
"""The tools that build a firmware, and a build."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from etx_schema.errors import EtxError
from etx_schema.stopping import run_child

TOOLS = {
    "cmake": "pip install cmake",
    "arm-none-eabi-g++": "apt-get install gcc-arm-none-eabi libstdc++-arm-none-eabi-newlib",
    "qemu-system-arm": "apt-get install qemu-system-arm",
    "cc": "apt-get install gcc",
}
BUILDING = ("cmake", "arm-none-eabi-g++")


def have_tools(names: Iterable[str]) -> bool:
    """Return whether all are in PATH."""
    return all(shutil.which(name) for name in names)


def require_tools(what: str, names: Iterable[str] = tuple(TOOLS)) -> None:
    """Errors: EtxError with what is missing and how to install it."""
    for tool in names:
        if shutil.which(tool) is None:
            raise EtxError(f"{tool} is not in PATH, and {what} needs it: {TOOLS[tool]}")


def build_firmware(folder: Path, build: Path, options: Sequence[str]) -> Path:
    """Build a project of etx firmware; return the image. Errors: EtxError with the compiler's."""
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    if launcher := shutil.which("ccache"):
        options = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}", *options]
    cache = {"CCACHE_BASEDIR": str(folder.resolve()), "CCACHE_NOHASHDIR": "1"}
    run_tool(["cmake", "-S", str(folder), "-B", str(build), *generator, *options], **cache)
    run_tool(["cmake", "--build", str(build), "-j2"], **cache)
    return build / "firmware.elf"


def run_tool(command: list[str], **variables: str) -> str:
    """Return what a command prints. Errors: EtxError with it, where the command fails."""
    environment = {**os.environ, "LC_ALL": "C", **variables}
    done = run_child(command, env=environment)
    if done.returncode != 0:
        output = (done.stdout + done.stderr)[-3000:]
        raise EtxError(f"{' '.join(command)} failed with code {done.returncode}:\n{output}")
    return done.stdout
