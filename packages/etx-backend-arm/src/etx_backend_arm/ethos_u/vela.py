# SPDX-License-Identifier: BSD-3-Clause
"""Vela, Arm's compiler for Ethos-U: a process of its own, so that nothing it does ends ours."""

from __future__ import annotations

import os
import re
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
SETTING = re.compile(r"^ +(\w+) = (.*)$", re.MULTILINE)
"""A line of what Vela says of its configuration."""
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
        command += ["--enable-debug-db", "--verbose-config"]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        result = run_child(command, env=environment)
        made = Path(folder, "graph_vela.npz")
        if result.returncode or not made.exists():
            said = "\n  ".join(_said(result.stdout + result.stderr))
            raise BackendError(
                f"Vela could not compile the graph for {spec.target}:\n  {said}\n"
                f"  it was called with {' '.join(spec.flags)}"
            )
        report = {"vela": found, "target": spec.target}
        report |= report_of(Path(folder), "graph", origins)
        with np.load(made) as arrays:
            blob = _blob(arrays)
        _require_memory(dict(SETTING.findall(result.stdout)), blob, report)
        return blob, report


def _require_memory(
    settings: Mapping[str, str], blob: EthosUBlob, report: Mapping[str, Any]
) -> None:
    """Raise BackendError where a graph takes more SRAM than is there: Vela says nothing then.

    Of an arena elsewhere, SRAM holds what is staged.
    """
    text = settings["arena_cache_size"]
    size, _, place = text.partition(" from ")
    is_staged = settings["feature_map_storage_mem_area"] != settings["fast_storage_mem_area"]
    needed = report["sram_bytes"] if is_staged else blob.scratch_size
    if place == "Default" or needed <= int(size):
        return
    named = [layer for layer in report["layers"] if layer["op"]] or report["layers"]
    largest = max(named, key=lambda layer: layer["sram_bytes"])
    at = f" at {largest['source']}" if largest["source"] else ""
    raise BackendError(
        f"{report['target']} has {int(size):,} bytes of SRAM (arena_cache_size of the "
        f"{place.lower()}), and the graph takes {needed:,}, {needed - int(size):,} more; of its "
        f"operators {largest['op'] or largest['layer']}{at} takes most, "
        f"{largest['sram_bytes']:,}: give a memory mode with more, one whose arena lies in DRAM "
        "(of a U65 or U85), or make tensors smaller"
    )


def _said(text: str) -> list[str]:
    """Return what Vela says of an error: of a traceback or a usage its last line."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    if any(line.startswith(("Traceback ", "usage: ")) for line in lines):
        name, _, rest = lines[-1].partition("Error: ")
        if not rest or " " in name or " " not in rest:
            return [lines[-1]]
        return [rest.strip("'\"")]
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
