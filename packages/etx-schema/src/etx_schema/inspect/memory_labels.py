# SPDX-License-Identifier: BSD-3-Clause
"""How allocations are named in reports and pictures."""

from __future__ import annotations

from etx_schema.inspect.arenas import Allocation

KINDS = {"input": "#5f7f9f", "state": "#8a6d8f"}


def bytes_text(count: float) -> str:
    """Return a number of bytes for people: `3.2 MiB`."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            digits = ".3g" if count < 1000 * size else ".0f"
            return f"{count / size:{digits}} {unit}"
    return f"{count:.0f} B"


def label_of(allocation: Allocation) -> str:
    """Return the short name of what made a tensor."""
    if allocation.kind in ("input", "state") and allocation.first == 0:
        return f"{allocation.kind} {allocation.name}"
    return short_name(allocation.op)


def kind_of(allocation: Allocation) -> str:
    """Return `input` or `state` where no instruction made it, else nothing."""
    given = allocation.kind in KINDS and allocation.op == allocation.kind
    return allocation.kind if given else ""


def short_name(op: str) -> str:
    """Return an operator without its namespace and overload."""
    name = op.rpartition("::")[2].partition(".")[0]
    return op if op.startswith("delegate") else name
