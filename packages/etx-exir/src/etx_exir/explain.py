# SPDX-License-Identifier: BSD-3-Clause
"""Why operators stayed out of delegates: noted while partitioning, shown by `--explain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from etx_exir.backend import DELEGATION_TAG, Partitioner
from etx_exir.delegate import CALL_DELEGATE
from etx_exir.origin import module_path, source_line
from etx_exir.passes.base import graph_modules

__all__ = ["Outside", "explanation", "name_of", "note_reasons", "operators", "outside", "table"]

REASONS = "why_not_delegated"


@dataclass(frozen=True)
class Outside:
    """An operator that no backend took: where it comes from, and each partitioner's reason."""

    operator: str
    node: str
    method: str
    module: str = ""
    source: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)


def operators(root: GraphModule) -> list[Node]:
    """Return the nodes that compute something outside of delegates, nested graphs included."""
    return [
        node
        for module in graph_modules(root)
        for node in module.graph.nodes
        if node.op == "call_function"
        and (hasattr(node.target, "_schema") or _is_control_flow(node))
    ]


def _is_control_flow(node: Node) -> bool:
    return node.target is not CALL_DELEGATE and any(
        arg.op == "get_attr" for arg in node.all_input_nodes
    )


def note_reasons(program: ExportedProgram, partitioner: Partitioner) -> None:
    """Keep at every untagged node what `partitioner` says of it."""
    for node in operators(program.graph_module):
        if node.meta.get(DELEGATION_TAG) is None:
            reasons = dict(node.meta.get(REASONS, ()))
            label = name = type(partitioner).__name__
            count = 1
            while label in reasons:
                count += 1
                label = f"{name} #{count}"
            reasons[label] = partitioner.why_not(node) or "it could be delegated, but was not"
            node.meta[REASONS] = reasons


def outside(program: ExportedProgram, method: str = "forward") -> list[Outside]:
    """Return what stayed out of delegates, in the order of execution."""
    return [
        Outside(
            name_of(node),
            node.name,
            method,
            module_path(node) or "",
            source_line(node),
            dict(node.meta.get(REASONS, ())),
        )
        for node in operators(program.graph_module)
    ]


def explanation(rows: Sequence[Outside]) -> str:
    """Return a table: where each operator comes from, and a line for each partitioner's reason."""
    lines: list[tuple[str, ...]] = []
    for row in rows:
        place: tuple[str, ...] = (row.operator, row.module, row.source)
        reasons = row.reasons or {"": "no partitioner was given"}
        for partitioner, reason in reasons.items():
            lines.append((*place, partitioner, reason))
            place = ("", "", "")
    return table(lines, ("operator", "module", "source", "partitioner", "why it stayed out"))


def name_of(node: Node) -> str:
    """Return the name of the operator that `node` calls."""
    target = getattr(node.target, "_name", node.target) if _is_control_flow(node) else node.target
    return str(target)


def table(rows: Sequence[Sequence[Any]], heads: Sequence[str]) -> str:
    """Return rows as text in columns, two spaces between."""
    cells = [[str(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)
