# SPDX-License-Identifier: BSD-3-Clause
"""What Vela estimates of each layer, with the operator and the source line behind it."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from etx_schema.problem import DEBUG_KEY

__all__ = [
    "decoded",
    "encoded",
    "layer_at",
    "report_key",
    "report_lines",
    "report_of",
    "total_line",
]

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
    ``commands`` are offsets in the command stream, of the last command of each part of a layer.
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
    commands = _last_commands(folder / f"{stem}_debug.xml")
    if len(commands) == len(layers):
        layers = [a | {"commands": b} for a, b in zip(layers, commands, strict=True)]
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
        return _read(file)


def _read(lines: Iterable[str]) -> list[dict[str, str]]:
    return [{key.strip(): value for key, value in row.items()} for row in csv.DictReader(lines)]


def _last_commands(path: Path) -> list[list[int]]:
    """Return of each operator in the order of the commands where its parts end."""
    table = ElementTree.parse(path).find("table[@name='queue']")
    found: dict[str, list[int]] = {}
    for row in _read((table.text or "").split() if table is not None else ()):
        found.setdefault(row["scheduled_id"], []).append(int(row["offset"]))
    return list(found.values())


def layer_at(report: Mapping[str, Any], offset: int) -> dict[str, Any] | None:
    """Return the layer that the command at an offset belongs to, as an error names it."""
    ends = [(end, each) for each in report["layers"] for end in each.get("commands", ())]
    behind = [pair for pair in ends if pair[0] >= offset]
    found: dict[str, Any] | None = min(behind, key=lambda pair: pair[0])[1] if behind else None
    return found


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
            hex(max(each["commands"])) if "commands" in each else "",
            each["layer"],
            f"{each['op']}  {each['source']}".strip(),
        )
        for each in report["layers"]
    ]
    counts = ("cycles", "MACs", "SRAM bytes", "SRAM cycles", "flash cycles")
    head = (*counts, "commands to", "layer", "operator")
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    table = [
        "  ".join(
            cell.rjust(width) if i <= len(counts) else cell.ljust(width)
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
