# SPDX-License-Identifier: BSD-3-Clause
"""What the page shows, as one JSON document: tables of numbers, and every text once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from etx_schema import Blob, EtxError, ExecutionPlan, ProgramError, PteFile, program_of, read_pte
from etx_schema import Tensor as PlannedTensor
from etx_schema.dtypes import tensor_nbytes
from etx_schema.files import PathLike, load_bytes
from etx_schema.inspect.arenas import MethodMemory
from etx_schema.inspect.memory import memory_of
from etx_schema.problem import Origins

from etx_devtools.diff.rows import Row, rows_of
from etx_devtools.report.advice import advice
from etx_devtools.report.errors import Errors
from etx_devtools.report.stages import Log, left_of, reasons_of, stages_of
from etx_devtools.size import VIEWS, SizeReport, sizes

__all__ = ["Measured", "document"]

LARGEST = 1e300
LONGEST = 400
SIZE_ROWS = 60
Measured = Mapping[str, Sequence[float]]
"""Milliseconds of each instruction, by method."""
_HASHED = re.compile("named data [0-9a-f]{32,}")
_ODD = re.compile("[\ud800-\udfff]")


class Texts:
    """Numbers for texts; long ones are cut."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.all)
            self.all.append(shown(text))
        return self._numbers[text]


def shown(text: str) -> str:
    """Return a text of bounded length without halves of surrogate pairs."""
    text = _ODD.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def document(
    source: PathLike | Blob,
    measured: Measured | None = None,
    errors: Errors | None = None,
    log: Log | None = None,
) -> dict[str, Any]:
    """Return what `page` shows of a `.pte` or `.bpte`; raise EtxError where it cannot be read.

    `log` is what `read_log` returns: what the passes of the compiler changed.
    """
    name = Path(source).name if isinstance(source, (str, Path)) else "program"
    try:
        view = program_of(load_bytes(source))
        pte = read_pte(view)
    except ProgramError as error:
        raise EtxError(f"{name}: {error}") from error
    measured = measured or {}
    texts = Texts()
    memories = {each.method: each for each in memory_of(pte)}
    rows = {plan.name or "": rows_of(pte, plan) for plan in pte.program.execution_plan}
    methods = [
        _method(pte, plan, rows[plan.name or ""], memories.get(plan.name or ""), texts, measured)
        for plan in pte.program.execution_plan
    ]
    for method in methods:
        found = (errors or {}).get(method["name"])
        method["errors"] = None if found is None else _finite(found)
        entry = None if log is None else log.get(method["name"])
        method |= _logged(entry, pte, rows.get(method["name"], []), method["name"], texts)
    report = sizes(view)
    by_operator = size_rows(report, "operator")
    found_out = advice(rows, memories.values(), by_operator, measured, log)
    views = {
        by: [[texts(name), count] for name, count in size_rows(report, by)[:SIZE_ROWS]]
        for by in VIEWS
    }
    return {
        "file": shown(name),
        "bytes": report.file_size,
        "methods": methods,
        "sizes": views,
        "advice": [shown(line) for line in found_out],
        "measured": bool(measured),
        "texts": texts.all,
    }


def size_rows(report: SizeReport, by: str) -> list[tuple[str, int]]:
    """Return names and bytes; named data under a hash, as delegates store weights, in one row."""
    found: dict[str, int] = {}
    for row in report.by(by):
        name = "weights of delegates" if _HASHED.fullmatch(row.name) else row.name
        found[name] = found.get(name, 0) + row.bytes
    return sorted(found.items(), key=lambda item: -item[1])


def _logged(
    entry: Any, pte: PteFile, rows: Sequence[Row], name: str, texts: Texts
) -> dict[str, Any]:
    """Return what the log of the compiler says, each None where there is none."""
    if not isinstance(entry, dict):
        return {"stages": None, "reasons": None, "left": None}
    origins = Origins.of(pte.named_data)
    handles = [origins.handles_of(name, row.index) for row in rows]
    places: dict[tuple[str, str, str], list[int]] = {}
    for row in rows:
        places.setdefault((row.origin, row.module, row.source), []).append(row.index)
    return {
        "stages": stages_of(entry, handles, texts),
        "reasons": reasons_of(entry, places, texts),
        "left": left_of(entry, texts),
    }


def _finite(rows: list[list[float]]) -> list[list[float]]:
    """Return numbers that JSON has: the largest one for infinite and undefined errors."""
    return [[min(x, LARGEST) if x == x else LARGEST for x in row] for row in rows]


def _method(
    pte: PteFile,
    plan: ExecutionPlan,
    rows: list[Row],
    memory: MethodMemory | None,
    texts: Texts,
    measured: Measured,
) -> dict[str, Any]:
    seen: set[int] = set()
    lines = [[*_row(pte, row, texts, seen), _bytes(plan, row)] for row in rows]
    times = measured.get(plan.name or "")
    return {
        "name": shown(plan.name or ""),
        "rows": lines,
        "times": None if times is None else _padded(times, len(rows)),
        "inputs": [texts(_type(plan, index)) for index in plan.inputs],
        "outputs": [texts(_type(plan, index)) for index in plan.outputs],
        "delegates": _delegates(plan, rows, texts),
        "memory": [] if memory is None else _memory(memory, texts),
    }


def _row(pte: PteFile, row: Row, texts: Texts, seen: set[int]) -> list[Any]:
    """Return operator, module, line, origin, arguments, producers, bytes of new weights."""
    weights = 0
    for _, constant in row.constants:
        if constant.index not in seen and 0 <= constant.index < len(pte.constants):
            seen.add(constant.index)
            weights += len(pte.constants[constant.index])
    numbers = [texts(row.operator), texts(row.module), texts(row.source), texts(row.origin)]
    arguments = [texts(text) for text in row.arguments]
    return [*numbers, arguments, sorted(set(row.producers)), weights]


def _bytes(plan: ExecutionPlan, row: Row) -> int:
    """Return the bytes of what an instruction writes."""
    values = (plan.values[place].val for place in row.results if 0 <= place < len(plan.values))
    return sum(tensor_nbytes(value) for value in values if isinstance(value, PlannedTensor))


def _padded(times: Sequence[float], count: int) -> list[float]:
    return [round(time, 6) for time in times[:count]] + [0.0] * (count - len(times))


def _type(plan: ExecutionPlan, index: int) -> str:
    from etx_devtools.bundled_program.signature import describe

    return describe(plan.values[index].val) if 0 <= index < len(plan.values) else "nothing"


def _delegates(plan: ExecutionPlan, rows: list[Row], texts: Texts) -> list[list[Any]]:
    """Return instruction, name, and (module, operator) of what is inside, for each call."""
    return [
        [row.index, texts(row.operator), [[texts(m), texts(op)] for m, op in row.inner]]
        for row in rows
        if row.operator.startswith("delegate ")
    ]


def _memory(memory: MethodMemory, texts: Texts) -> list[dict[str, Any]]:
    return [
        {
            "id": arena.memory_id,
            "bytes": arena.size,
            "least": arena.largest_live_set,
            "boxes": [
                [each.start, each.end, each.first, each.last, texts(each.name), texts(each.kind)]
                for each in arena.allocations
            ],
        }
        for arena in memory.arenas
    ]
