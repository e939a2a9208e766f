# SPDX-License-Identifier: BSD-3-Clause
"""Vela, Arm's compiler for Ethos-U: a process of its own, so that nothing it does ends ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from etx_exir.errors import BackendError
from etx_schema.stopping import run_child, scratch_folder, stopping

from etx_backend_arm.ethos_u.blob import EthosUBlob, Port
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.ethos_u.report import Origin, report_of

__all__ = ["VERSION", "compile_and_report", "compile_graph", "vela_version"]

VERSION = "5.2.0"
"""Releases differ by a quarter in cycles on the same graph, so one is named."""
INSTALL = f"install etx-backend-arm[aot], or ethos-u-vela=={VERSION}"
SHOWN = 8
"""How many lines of what Vela says are in an error."""


def vela_version() -> str:
    """Return the version of Vela that is installed.

    Raises BackendError where there is none, or one of another version than ``VERSION``.
    """
    try:
        found = version("ethos-u-vela")
    except PackageNotFoundError:
        raise BackendError(f"Vela is not installed: {INSTALL}") from None
    if found != VERSION:
        raise BackendError(f"Vela {found} is installed, expected {VERSION}: {INSTALL}")
    return found


def compile_graph(graph: bytes, spec: EthosUCompileSpec) -> EthosUBlob:
    """Return what Vela makes of a TOSA file; raises BackendError with what Vela says."""
    return compile_and_report(graph, spec, {})[0]


def compile_and_report(
    graph: bytes, spec: EthosUCompileSpec, origins: Mapping[str, Origin]
) -> tuple[EthosUBlob, dict[str, Any]]:
    """Return what Vela makes of a TOSA file, and what it estimates (``report.report_of``)."""
    found = vela_version()
    with stopping(), scratch_folder() as folder:
        path = Path(folder, "graph.tosa")
        path.write_bytes(graph)
        command = [sys.executable, "-m", "ethosu.vela", str(path), *spec.flags]
        command += ["--output-format=raw", f"--output-dir={folder}", "--verbose-performance"]
        command.append("--enable-debug-db")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        result = run_child(command, env=environment)
        made = Path(folder, "graph_vela.npz")
        if result.returncode or not made.exists():
            said = "\n  ".join(_said(result.stdout + result.stderr))
            raise BackendError(f"Vela could not compile the graph for {spec.target}:\n  {said}")
        report = {"vela": found, "target": spec.target}
        report |= report_of(Path(folder), "graph", origins)
        with np.load(made) as arrays:
            return _blob(arrays), report


def _said(text: str) -> list[str]:
    """Return what Vela says of an error: of a traceback or a usage its last line."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    if any(line.startswith(("Traceback ", "usage: ")) for line in lines):
        name, _, rest = lines[-1].partition("Error: ")
        return [rest.strip("'\"") if rest and " " not in name else lines[-1]]
    return lines[-SHOWN:]


def _blob(arrays: Any) -> EthosUBlob:
    return EthosUBlob(
        arrays["cmd_data"].tobytes(),
        arrays["weight_data"].tobytes(),
        int(arrays["scratch_size"]),
        _ports(arrays, "input"),
        _ports(arrays, "output"),
    )


def _ports(arrays: Any, kind: str) -> tuple[Port, ...]:
    names = ("shape", "elem_size", "offset", "region")
    columns = [arrays[f"{kind}_{name}"].tolist() for name in names]
    return tuple(
        Port(tuple(shape), int(size), int(offset), int(region))
        for shape, size, offset, region in zip(*columns, strict=True)
    )
