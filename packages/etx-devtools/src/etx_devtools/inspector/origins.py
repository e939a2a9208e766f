# SPDX-License-Identifier: BSD-3-Clause
"""Fill in what a program says of where its instructions come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etx_schema import PteFile
from etx_schema.inspect.describe_method import Method

from etx_devtools.delegated import handles_of_events
from etx_devtools.inspector.blocks import Event, EventBlock


def add_origins(blocks: Iterable[EventBlock], pte: PteFile) -> None:
    """Fill in operators, modules, source lines, handles and backends of events, where known.

    A dump that does not name its methods is one of the program's only method, or of `forward`.
    """
    described = {plan.name or "": Method(pte, plan) for plan in pte.program.execution_plan}
    rows = {name: method.instructions() for name, method in described.items()}
    default = next(iter(rows)) if len(rows) == 1 else "forward"
    for block in blocks:
        method = described.get(block.method or default)
        instructions = rows.get(block.method or default, [])
        parts = _parts(block, instructions)
        for event in block.events:
            if method is not None and event.chain == 0 and event.instruction < len(instructions):
                mine = parts.get(event.instruction, {}).get(str(event.delegate_debug_identifier))
                _fill(event, instructions[event.instruction], method, mine)


def _parts(block: EventBlock, instructions: list[dict[str, Any]]) -> dict[int, Any]:
    """Return for each call of a delegate the handles of its events, by their ids."""
    names: dict[int, dict[str, None]] = {}
    for event in block.events:
        if event.is_delegated_op and event.chain == 0 and event.instruction < len(instructions):
            known = names.setdefault(event.instruction, {})
            known[str(event.delegate_debug_identifier)] = None
    return {
        index: handles_of_events([*known], instructions[index].get("ids", {}))
        for index, known in names.items()
    }


def _fill(event: Event, row: dict[str, Any], method: Method, mine: list[int] | None) -> None:
    if row["kind"] == "delegate":
        backend = method.plan.delegates[row["delegate"]].id
        if event.is_delegated_op:
            event.delegate_backend_name = backend
    handles = row.get("handles", [])
    inner = row.get("inner", {})
    if event.is_delegated_op:
        handles = handles if mine is None else mine
        origins = [inner[handle] for handle in handles if handle in inner] or [row]
    else:
        origins = list(inner.values()) or [row]
    event.debug_handles = handles[0] if len(handles) == 1 else (handles or None)
    names = [origin.get("from", origin.get("op")) for origin in origins]
    event.op_types = [str(name) for name in names if name]
    for number, origin in enumerate(origins):
        key = str(handles[number]) if number < len(handles) else str(number)
        if "source" in origin:
            event.stack_traces[key] = origin["source"]
        if "module" in origin:
            event.module_hierarchy[key] = {origin["module"]: ""}
