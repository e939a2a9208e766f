# SPDX-License-Identifier: BSD-3-Clause
"""What Vela estimates of each layer, with the operator and the source line behind it."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from etx_schema.problem import DEBUG_KEY

__all__ = ["decoded", "encoded", "report_key", "report_lines", "report_of", "total_line"]

KILO = 1024
Origin = tuple[str, str]
"""An operator and its source line."""


def report_key(blob: bytes) -> str:
    """Return the name under which the report of a blob is stored in a program's named data."""
    return f"{DEBUG_KEY}/ethos_u/{hashlib.sha256(blob).hexdigest()[:16]}"


def report_of(folder: Path, stem: str, origins: Mapping[str, Origin]) -> dict[str, Any]:
    """Return the totals and layers of the tables that Vela has written into a folder.

    ``origins`` says of values of the graph what made them. Cycles and MACs are Vela's estimates;
    ``sram_cycles`` and ``flash_cycles`` are those of a layer's accesses, flash or DRAM.
    """
    (totals,) = _rows(next(folder.glob(f"{stem}_summary_*.csv")))
    layers = []
    for row in _rows(folder / f"{stem}_per-layer.csv"):
        op, source = _origin(row["Name"], origins)
        layers.append(
            {
                "layer": row["NNG Operator"],
                "cycles": _number(row, "Op Cycles"),
                "macs": _number(row, "MAC Count"),
                "sram_bytes": _number(row, "Staging Usage"),
                "sram_cycles": _number(row, "SRAM AC"),
                "flash_cycles": sum(_number(row, f"{kind} AC") for kind in SLOW),
                "op": op,
                "source": source,
            }
        )
    flash = ("dram", "on_chip_flash", "off_chip_flash")
    return {
        "cycles": _number(totals, "cycles_total"),
        "macs": _number(totals, "nn_macs"),
        "sram_bytes": round(float(totals["sram_memory_used"]) * KILO),
        "flash_bytes": round(sum(float(totals[f"{kind}_memory_used"]) for kind in flash) * KILO),
        "layers": layers,
    }


SLOW = ("DRAM", "OnFlash", "OffFlash")


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return [{key.strip(): value for key, value in row.items()} for row in csv.DictReader(file)]


def _number(row: Mapping[str, str], name: str) -> int:
    return round(float(row[name]))


def _origin(name: str, origins: Mapping[str, Origin]) -> Origin:
    """Return what made a value, or the longest beginning of its name: Vela adds to names."""
    while name and name not in origins:
        name = name[:-1]
    return origins.get(name, ("", ""))


def report_lines(report: Mapping[str, Any]) -> Sequence[str]:
    """Return a line of totals, and one a layer."""
    rows = [
        (
            f"{each['cycles']:,}",
            f"{each['macs']:,}",
            f"{each['sram_bytes']:,}",
            f"{each['sram_cycles']:,}",
            f"{each['flash_cycles']:,}",
            each["layer"],
            f"{each['op']}  {each['source']}".strip(),
        )
        for each in report["layers"]
    ]
    head = ("cycles", "MACs", "SRAM bytes", "SRAM cycles", "flash cycles", "layer", "operator")
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    table = [
        "  ".join(
            cell.rjust(width) if i < 5 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]
    return [total_line(report), *table]


def total_line(report: Mapping[str, Any]) -> str:
    """Return the totals as Vela estimates them."""
    return (
        f"Vela {report['vela']} for {report['target']}: {report['cycles']:,} cycles, "
        f"{report['macs']:,} MACs, {report['sram_bytes']:,} bytes of SRAM, "
        f"{report['flash_bytes']:,} of flash or DRAM"
    )


def encoded(report: Mapping[str, Any]) -> bytes:
    """Return a report as it is stored."""
    return json.dumps(report, separators=(",", ":")).encode()


def decoded(data: Any) -> dict[str, Any]:
    """Return what ``encoded`` was given."""
    found: dict[str, Any] = json.loads(bytes(memoryview(data)))
    return found
