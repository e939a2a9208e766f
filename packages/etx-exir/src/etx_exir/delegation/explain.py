# SPDX-License-Identifier: BSD-3-Clause
"""What `--explain` shows: why operators stayed out of delegates, why passes left them as they are,
which constants are not folded."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from etx_exir.analysis.constant_expressions import Expression, expressions_of
from etx_exir.delegation.backend import DELEGATION_TAG, Partitioner
from etx_exir.ir.constants import Constants
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.delegate_call import CALL_DELEGATE
from etx_exir.ir.provenance import DECLINED, module_path, source_line

__all__ = [
    "AtRunTime",
    "Declined",
    "Outside",
    "at_run_time",
    "costs",
    "declined",
    "explanation",
    "name_of",
    "near_misses",
    "note_reasons",
    "operators",
    "outside",
    "table",
]

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


@dataclass(frozen=True)
class Declined:
    """Calls of an operator that a pass nearly rewrote: why not, how many, where the first is."""

    operator: str
    by: str
    reason: str
    times: int
    method: str
    module: str
    source: str


def declined(program: ExportedProgram, method: str = "forward") -> list[Declined]:
    """Return what passes left as it is for want of little, equal reasons once."""
    found: dict[tuple[str, str, str], list[Node]] = {}
    for module in graph_modules(program.graph_module):
        for node in module.graph.nodes:
            called = node.args[0] if node.target is operator.getitem else node
            for by, reason in node.meta.get(DECLINED, {}).items():
                found.setdefault((name_of(called), by, reason), []).append(node)
    return [
        Declined(*key, len(nodes), method, module_path(nodes[0]) or "", source_line(nodes[0]))
        for key, nodes in found.items()
    ]


def near_misses(rows: Sequence[Declined]) -> str:
    """Return a table of what passes left as it is."""
    heads = ("operator", "left by", "times", "module", "source", "why")
    cells = [(r.operator, r.by, r.times, r.module, r.source, r.reason) for r in rows]
    return table(cells, heads)


@dataclass(frozen=True)
class AtRunTime:
    """Operators on only constants that are not computed ahead, and what either way would take.

    `saved_bytes` is what the file would grow by, `arena_bytes` the size of all that they compute.
    """

    operators: tuple[str, ...]
    constants: tuple[str, ...]
    method: str
    module: str
    source: str
    saved_bytes: int
    arena_bytes: int


def at_run_time(program: ExportedProgram, method: str = "forward") -> list[AtRunTime]:
    """Return what `program` computes of only constants, for its file would grow otherwise."""
    constants = Constants(program)
    items = {item.node: item for item in expressions_of(constants)}
    rows = []
    for node, item in items.items():
        if item.is_leaf or item.nbytes is None or all(user in items for user in node.users):
            continue
        region = _computing(node, items)
        reads = [i for i in items if i in item.leaves]
        only = [
            leaf
            for leaf in reads
            if all(r in region for r in constants.readers(leaf)) and not constants.is_shared(leaf)
        ]
        rows.append(
            AtRunTime(
                tuple(name_of(n) for n in items if n in region and items[n].instruction),
                tuple(constants.name(leaf) for leaf in reads),
                method,
                module_path(node) or "",
                source_line(node),
                item.nbytes - sum(items[leaf].nbytes or 0 for leaf in only),
                sum(items[n].nbytes or 0 for n in region if items[n].instruction),
            )
        )
    return rows


def _computing(node: Node, items: Mapping[Node, Expression]) -> set[Node]:
    """Return `node` and the calls before it."""
    region: set[Node] = set()
    pending = [node]
    while pending:
        top = pending.pop()
        if top not in region and not items[top].is_leaf:
            region.add(top)
            pending += top.all_input_nodes
    return region


def costs(rows: Sequence[AtRunTime]) -> str:
    """Return a table of what is computed of constants at run time."""
    heads = ("computed at run time", "of", "module", "source", "file saves", "arena holds")
    cells = [
        (
            ", ".join(row.operators),
            ", ".join(row.constants) or "numbers",
            row.module,
            row.source,
            f"{row.saved_bytes:,} bytes",
            f"{row.arena_bytes:,} bytes",
        )
        for row in rows
    ]
    return table(cells, heads)
