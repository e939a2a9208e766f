# SPDX-License-Identifier: BSD-3-Clause
"""The planned memory of a file as a document, as text and as files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from etx_schema.errors import EtxError
from etx_schema.files import write_atomically
from etx_schema.inspect.arenas import Allocation, Arena, MethodMemory, Names
from etx_schema.inspect.memory_labels import bytes_text, label_of
from etx_schema.inspect.memory_picture import picture

SHOWN = 12


def check_output(path: str) -> None:
    """Refuse a report to a name that does not say its form."""
    if Path(path).suffix not in (".svg", ".txt", ".json"):
        raise EtxError(f"a memory report to {path}: the name must end in .svg, .txt or .json")


def write_report(
    path: str | Path, methods: Sequence[MethodMemory], name: str, names: Names | None = None
) -> None:
    """Write the report as what the name's ending says; nothing is left behind when that fails."""
    kind = Path(path).suffix
    if kind == ".svg":
        text = picture(methods, name, names or {})
    elif kind == ".json":
        text = json.dumps(document(methods, name, names), indent=1) + "\n"
    else:
        text = "\n".join(lines(methods, name, names)) + "\n"
    write_atomically(path, [text.encode(errors="backslashreplace")])


def document(
    methods: Sequence[MethodMemory], name: str, names: Names | None = None
) -> dict[str, Any]:
    """Return the report for JSON: every tensor with its bytes and its steps."""
    rows = []
    for method in methods:
        arenas = []
        for arena in method.arenas:
            bank, capacity = (names or {}).get((method.method, arena.memory_id), ("", None))
            arenas.append(
                {
                    "memory_id": arena.memory_id,
                    "name": bank,
                    "capacity": capacity,
                    "size": arena.size,
                    "largest_live_set": arena.largest_live_set,
                    "gap": round(arena.gap, 6),
                    "fullest_step": arena.fullest_step,
                    "load": arena.load,
                    "tensors": [vars(t) | {"sizes": list(t.sizes)} for t in arena.allocations],
                }
            )
        rows.append(
            {"method": method.method, "instructions": method.instructions, "arenas": arenas}
        )
    return {"file": name, "methods": rows}


def lines(methods: Sequence[MethodMemory], name: str, names: Names | None = None) -> Iterator[str]:
    """Yield the report as text: a summary of each arena, then the largest tensors at its peak."""
    yield f"{name}: planned memory"
    for method in methods:
        for arena in method.arenas:
            if arena.size or arena.allocations:
                key = (method.method, arena.memory_id)
                yield ""
                yield from _arena(method, arena, *(names or {}).get(key, ("", None)))


def _arena(method: MethodMemory, arena: Arena, bank: str, capacity: int | None) -> Iterator[str]:
    title = f"method {method.method}, memory {arena.memory_id}"
    yield title + (f" ({bank})" if bank else "")
    of = f" of {capacity:,}" if capacity is not None else ""
    yield f"  peak               {arena.size:,} bytes{of}"
    yield (
        f"  largest live set   {arena.largest_live_set:,} bytes, at"
        f" {step_text(method, arena.fullest_step)}"
    )
    yield f"  gap                {100 * arena.gap:.1f} %"
    there = arena.at(arena.fullest_step)
    count = len({each.value for each in arena.allocations})
    yield f"  tensors            {count}, of them {len(there)} at the fullest step:"
    for size, allocation in there[:SHOWN]:
        share = f"{100 * size / max(arena.size, 1):.1f} %"
        yield f"    {size:>13,}  {share:>7}  {allocation_text(allocation, size)}"
    if len(there) > SHOWN:
        rest = sum(size for size, _ in there[SHOWN:])
        share = f"{100 * rest / max(arena.size, 1):.1f} %"
        yield f"    {rest:>13,}  {share:>7}  {len(there) - SHOWN} others"


def step_text(method: MethodMemory, step: int) -> str:
    """Say which step it is."""
    if step == 0:
        return "the start"
    if step > len(method.instructions):
        return "the end"
    return f"instruction {step - 1} ({method.instructions[step - 1]})"


def allocation_text(allocation: Allocation, size: int) -> str:
    """Describe a tensor in one line; `size` of its bytes are live."""
    shape = f"{allocation.dtype}[{', '.join(map(str, allocation.sizes))}]"
    origin = ", ".join(part for part in (allocation.module, allocation.source) if part)
    part = ""
    if size < allocation.nbytes:
        part = f"  part of {bytes_text(allocation.nbytes)}"
    return f"{label_of(allocation)}  {shape}{part}" + (f"  # {origin}" if origin else "")
