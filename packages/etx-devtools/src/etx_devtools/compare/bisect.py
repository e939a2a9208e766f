# SPDX-License-Identifier: BSD-3-Clause
"""The node inside a delegate that is wrong, where looking into the delegate would change it.

Each compilation delegates a beginning of what the partitioner takes; the rest runs on kernels. The
shortest beginning whose delegates return something wrong ends with the node at fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etx_exir import to_edge_transform_and_lower
from etx_exir.delegation.backend import DELEGATION_TAG, Partitioner, PartitionResult
from etx_exir.ir.equal_values import note_of
from etx_exir.ir.provenance import module_path, source_line
from etx_exir.lower.copy_program import copy_program
from etx_schema import EtxError, PteFile
from etx_schema.files import write_atomically
from torch.export import ExportedProgram
from torch.fx import Node

from etx_devtools.compare.checks import Check
from etx_devtools.compare.inside import between_integers
from etx_devtools.compare.report import Report

__all__ = ["Bisection", "bisect", "compile_part", "is_delegate", "isolate"]

Verdict = Callable[[PteFile], Report]


@dataclass
class Bisection:
    """What was found: nodes `start` to `end` of what is delegated, and the steps that led there.

    A step is how many nodes were delegated, and whether a delegate returned something wrong.
    Without a name, no delegate is wrong.
    """

    steps: list[tuple[int, bool]] = field(default_factory=list)
    compilations: int = 0
    nodes: int = 0
    start: int = 0
    end: int = 0
    name: str = ""
    operator: str = ""
    module: str = ""
    source: str = ""

    def lines(self) -> Iterator[str]:
        """Yield what was found, and the steps."""
        asked = ", ".join(f"{count} {'wrong' if bad else 'right'}" for count, bad in self.steps)
        count = f"{self.compilations} compilation{'' if self.compilations == 1 else 's'}"
        yield f"bisection: {count}; nodes in delegates: {asked}"
        if not self.name:
            yield f"bisection: none of {self.nodes} nodes is wrong in a delegate"
            return
        where = " ".join(filter(None, (self.module, self.source)))
        yield f"bisection: node {self.end} of {self.nodes}, {self.operator} ({self.name}) {where}"
        width = self.end - self.start
        yield f"bisection: the instruction above is a delegate of {width} of these nodes"

    def document(self) -> dict[str, Any]:
        """Return what replays the search, and what it found, as JSON's types."""
        keys = ("nodes", "steps", "compilations", "start", "end", "name", "operator", "module")
        found = {key: getattr(self, key) for key in (*keys, "source")}
        return {**found, "steps": [list(step) for step in self.steps]}


class _Part(Partitioner):
    """Takes of what another partitioner takes the units `start` to `end`, in the graph's order."""

    def __init__(self, whole: Partitioner, start: int, end: int | None) -> None:
        super().__init__(whole.spec)
        self.whole, self.start, self.end = whole, start, end
        self.units: list[list[Node]] = []

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag only these units, and the constants that only they read."""
        result = self.whole.partition(exported_program)
        graph = result.tagged_exported_program.graph
        self.units = _units([n for n in graph.nodes if DELEGATION_TAG in n.meta])
        for number, unit in enumerate(self.units):
            if number < self.start or (self.end is not None and number >= self.end):
                for node in unit:
                    del node.meta[DELEGATION_TAG]
        for node in graph.find_nodes(op="placeholder"):
            tag = node.meta.get(DELEGATION_TAG)
            if tag is not None and all(u.meta.get(DELEGATION_TAG) != tag for u in node.users):
                del node.meta[DELEGATION_TAG]
        left = {n.meta[DELEGATION_TAG] for n in graph.nodes if DELEGATION_TAG in n.meta}
        tags = {tag: spec for tag, spec in result.partition_tags.items() if tag in left}
        return PartitionResult(result.tagged_exported_program, tags)

    def ops_to_not_decompose(self, exported_program: ExportedProgram) -> Any:
        """Keep what the whole partitioner keeps."""
        return self.whole.ops_to_not_decompose(exported_program)

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        """Do what the whole partitioner does."""
        return self.whole.transform_for_pre_decomposition(exported_program)

    def why_not(self, node: Node) -> str | None:
        """Ask the whole partitioner."""
        return self.whole.why_not(node)


def _units(tagged: Sequence[Node]) -> list[list[Node]]:
    """Split nodes where a value of the model ends one, that is not one between integers."""
    units: list[list[Node]] = [[]]
    left_out = between_integers(tagged[0].graph) if tagged else set()
    for node in tagged:
        if node.op == "call_function":
            units[-1].append(node)
            if note_of(node) is not None and node not in left_out:
                units.append([])
    if not units[-1]:
        units.pop()
    return units


def compile_part(
    program: ExportedProgram, partitioner: Partitioner, start: int, end: int | None = None
) -> tuple[PteFile, list[list[Node]]]:
    """Compile with the units `start` to `end` of what is delegated; return also all units."""
    part = _Part(partitioner, start, end)
    edge = to_edge_transform_and_lower(program, partitioner=[part])
    return edge.to_executorch().pte_file, part.units


def bisect(
    program: ExportedProgram,
    partitioner: Partitioner,
    verdict: Verdict,
    log: str | Path | None = None,
    wrong: bool = False,
) -> Bisection:
    """Find the first node whose delegation makes a delegate wrong, in log2(n) + 1 compilations.

    `verdict` compares a program with the model. With `wrong`, it is known that the whole delegated
    program is; else that is asked first. `log` is a file where each step is kept: steps that it
    already has are not compiled again. Errors: EtxError where it is of another model or backend.
    """
    units = _units_of(program, partitioner)
    known = _read(log)
    if known and known["nodes"] != len(units):
        raise EtxError(
            f"{log} is the log of a search among {known['nodes']} nodes, and here are "
            f"{len(units)}: remove it, or give the model and the backend that it is of"
        )
    found = Bisection(nodes=len(units))
    old: dict[int, bool] = dict(known.get("steps", []))

    def is_wrong(count: int) -> bool:
        if count not in old:
            pte, _ = compile_part(program, partitioner, 0, count)
            found.compilations += 1
            old[count] = _delegate_of(verdict(pte)) is not None
        found.steps.append((count, old[count]))
        _write(log, found)
        return old[count]

    low, high = 0, len(units)
    if not units or not (wrong or is_wrong(high)):
        return found
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_wrong(middle) else (middle, high)
    _name(found, units[low][-1])
    found.start, found.end = low, high
    _write(log, found)
    return found


def isolate(
    found: Bisection, program: ExportedProgram, partitioner: Partitioner, verdict: Verdict
) -> tuple[PteFile, Report]:
    """Compile with only the node at fault in a delegate, or as many before it as it needs."""
    width = 1
    while True:
        start = max(0, found.end - width)
        pte, _ = compile_part(program, partitioner, start, found.end)
        report = verdict(pte)
        if _delegate_of(report) is not None or start == 0:
            found.start = start
            return pte, report
        width *= 2


def _units_of(program: ExportedProgram, partitioner: Partitioner) -> list[list[Node]]:
    """Return what is delegated, without compiling any of it."""
    part = _Part(partitioner, 0, None)

    def only_look(
        edge: Mapping[str, ExportedProgram], chosen: Mapping[str, Partitioner | None]
    ) -> dict[str, ExportedProgram]:
        for name, each in edge.items():
            if chosen.get(name) is not None:
                part.partition(copy_program(each))
        return dict(edge)

    to_edge_transform_and_lower(program, partitioner=[part], delegator=only_look)
    return part.units


def _name(found: Bisection, node: Node) -> None:
    note = note_of(node)
    found.name = str(note[0] if isinstance(note, tuple) else note or node.name)
    found.operator = str(node.target)
    found.module, found.source = module_path(node) or "", source_line(node) or ""


def _delegate_of(report: Report) -> Check | None:
    """Return the first wrong result of a delegate."""
    return next(
        (c for call in report.calls for c in call.checks if c.wrong and is_delegate(c)), None
    )


def is_delegate(check: Check) -> bool:
    """Whether a check is of a delegate's result."""
    return check.operator.startswith("delegate ")


def _read(log: str | Path | None) -> Mapping[str, Any]:
    if log is None or not Path(log).exists():
        return {}
    try:
        found = json.loads(Path(log).read_text())
        steps = [(int(count), bool(wrong)) for count, wrong in found["steps"]]
        return {"nodes": int(found["nodes"]), "steps": steps}
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise EtxError(f"{log} is not the log of a bisection: {why}") from error


def _write(log: str | Path | None, found: Bisection) -> None:
    if log is not None:
        write_atomically(log, [json.dumps(found.document(), indent=1).encode()])
