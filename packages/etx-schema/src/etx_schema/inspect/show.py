# SPDX-License-Identifier: BSD-3-Clause
"""Print the document of a file as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_SIDES = ("inputs", "expected_outputs")


def lines(name: str, document: dict[str, Any], *, debug: bool = False) -> Iterator[str]:
    """Yield the lines of a description; with `debug` all that is known of each origin."""
    sizes = document["bytes"]
    yield (
        f"{Path(name).name}: {sizes['file']:,} bytes "
        f"(tables {sizes['program']:,}, segments {sizes['segments']:,})"
    )
    if document["format"] == "ptd":
        for entry in document["entries"]:
            yield f"  {entry['name']}: {_type(entry)}{entry['bytes']:,} bytes"
        return
    yield from _suites(document.get("suites", ()))
    peer = document["executorch"]
    if peer is not None:
        yield f"  {peer['text']}" + (" (marked !)" if peer["missing"] else "")
    for method in document["methods"]:
        yield ""
        missing = set(peer["missing"]) if peer else set()
        yield from _method(method, missing, debug=debug)
    yield ""
    yield "segments"
    for i, segment in enumerate(document["segments"]):
        names = f" {', '.join(segment['names'])}" if segment["names"] else ""
        yield f"  {i}: {segment['size']:,} bytes at {segment['offset']:,}: {segment['kind']}{names}"


def _suites(suites: Iterable[dict[str, Any]]) -> Iterator[str]:
    for suite in suites:
        cases = suite["cases"]
        silent = sum(not case["expected_outputs"] for case in cases)
        note = f", {silent} of them without expected outputs" if silent else ""
        yield f"  test cases of {suite['method']}: {len(cases)}{note}"
        for i, case in enumerate(cases):
            sides = (", ".join(map(_case_value, case[key])) for key in _SIDES)
            yield f"    {i}: {' -> '.join(side or 'nothing' for side in sides)}"


def _case_value(entry: dict[str, Any]) -> str:
    if entry["type"] == "Tensor":
        return f"{entry['dtype']}{entry['sizes']}"
    return str(entry["value"])


def _method(method: dict[str, Any], missing: set[str], *, debug: bool) -> Iterator[str]:
    yield f"method {method['name']}"
    for what in ("inputs", "outputs", "constants", "state"):
        if method[what]:
            yield f"  {what}"
            for entry in method[what]:
                external = " (in a .ptd)" if entry.get("external") else ""
                yield f"    {entry['name']}: {_type(entry).rstrip()}{external}"
    instructions = method["instructions"]
    yield f"  instructions ({len(instructions)})"
    width = len(str(len(instructions)))
    for row in instructions:
        mark = "!" if row.get("op") in missing else " "
        origin = ", ".join(row[key] for key in ("module", "source") if key in row)
        suffix = f"  # {origin}" if origin else ""
        yield f"   {mark}{row['index']:>{width}}  {row['text']}{suffix}"
        if "kernel" in row:
            yield f"    {'':>{width}}    by {row['kernel']}"
        if debug:
            yield from (f"    {'':>{width}}    {line}" for line in _origin(row))
    for i, delegate in enumerate(method["delegates"]):
        yield f"  delegate {i}: {delegate['id']}, {delegate['bytes']:,} bytes"
        yield from (f"    {line}" for line in delegate.get("graph", {}).get("lines", ()))
    arenas = ", ".join(f"{size:,}" for size in method["arenas"])
    yield f"  arenas: {arenas} bytes" if arenas else "  arenas: none"


def _origin(row: dict[str, Any]) -> Iterator[str]:
    """Yield what an instruction was before lowering, and what a delegate holds."""
    inner = row.get("inner", {})
    if "from" in row and not inner:
        handles = ", ".join(map(str, row.get("handles", ())))
        yield f"from {row['from']}" + (f", handle {handles}" if handles else "")
    for handle, origin in inner.items():
        place = ", ".join(origin[key] for key in ("module", "source") if key in origin)
        yield f"handle {handle}: {origin.get('op', 'unknown')}" + (f"  # {place}" if place else "")
    for key, handles in row.get("ids", {}).items():
        yield f"id {key} of the backend: handles {', '.join(map(str, handles))}"


def _type(entry: dict[str, Any]) -> str:
    if "sizes" not in entry:
        if "type" not in entry:
            return ""
        stored = f" = {entry['stored']}" if "stored" in entry else ""
        return f"{entry['type']}{stored} "
    sizes = entry["sizes"]
    dims = entry.get("dims")
    shown = [_dim(size, dims[i] if dims else None, entry) for i, size in enumerate(sizes)]
    text = f"{entry['dtype']}[{', '.join(shown)}] "
    if entry["dim_order"] != list(range(len(sizes))):
        text += f"in dim order {entry['dim_order']} "
    return text


def _dim(size: int, row: Any, entry: dict[str, Any]) -> str:
    if not isinstance(row, dict):
        return f"<={size}" if entry.get("dynamic") and "dims" not in entry else str(size)
    high = row.get("max")
    text = f"{row.get('expr') or row.get('symbol')}={row.get('min', 0)}.."
    text += str(size if high is None else high)
    divisor = row.get("divisor", 1)
    return f"{text} step {divisor}" if divisor not in (1, None) else text
