# SPDX-License-Identifier: BSD-3-Clause
"""The Inspector."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from etx_schema import Blob, EtxError, PteFile, read_pte

from etx_devtools.etdump import read_etdump
from etx_devtools.inspector.blocks import Event, EventBlock, TimeScale, blocks_of
from etx_devtools.inspector.etrecord import Record, add_record, read_record
from etx_devtools.inspector.origins import add_origins
from etx_devtools.tabular import draw

TIMES = ("p10", "p50", "p90", "avg", "min", "max")
HIDDEN = ("raw", "delegate_debug_identifier", "stack_traces", "module_hierarchy", "debug_data")


class Inspector:
    """An ETDump of ETX or ExecuTorch: event blocks, tables, times of modules.

    `program`, the ``.pte`` that ran, says where instructions come from: operators, modules, source
    lines and backends; so does `etrecord`, a file of ETX or ExecuTorch or what `get_etrecord`
    returns, which has the programs, too. `debug_buffer_path` has the values. Ticks of the device
    are `source_time_scale`; those within delegates are what `delegate_time_scale_converter` makes
    of an identifier and a time. Errors: EtxError with the byte of a damaged dump.
    """

    def __init__(
        self,
        etdump_path: str | os.PathLike[str] | None = None,
        etdump_data: bytes | None = None,
        etrecord: object | None = None,
        source_time_scale: TimeScale = TimeScale.NS,
        target_time_scale: TimeScale = TimeScale.MS,
        debug_buffer_path: str | os.PathLike[str] | None = None,
        delegate_metadata_parser: Callable[[list[Any]], Mapping[str, Any]] | None = None,
        delegate_time_scale_converter: Callable[[int | str, int], int | float] | None = None,
        *,
        program: str | os.PathLike[str] | Blob | PteFile | None = None,
    ) -> None:
        if (etdump_path is None) == (etdump_data is None):
            raise ValueError("give one of etdump_path and etdump_data")
        source = etdump_path if etdump_data is None else etdump_data
        assert source is not None
        self.runs = read_etdump(source)
        buffer = None if debug_buffer_path is None else Path(debug_buffer_path).read_bytes()
        self._target = target_time_scale
        self.event_blocks: list[EventBlock] = blocks_of(
            self.runs, source_time_scale, target_time_scale, buffer, delegate_time_scale_converter
        )
        self._buffer, self._etrecord = buffer, etrecord
        self._record: Record | None = None
        if etrecord is not None:
            self._record = read_record(etrecord)
            add_record(self.event_blocks, self._record)
        if program is not None:
            pte = program if isinstance(program, PteFile) else read_pte(program)
            add_origins(self.event_blocks, pte)
        if delegate_metadata_parser is not None:
            for _, event in self._events():
                if event.delegate_debug_metadatas:
                    parsed = delegate_metadata_parser(event.delegate_debug_metadatas)
                    event.delegate_debug_metadatas = [dict(parsed)]

    def _events(self) -> list[tuple[EventBlock, Event]]:
        return [(block, event) for block in self.event_blocks for event in block.events]

    def _rows(
        self, include_units: bool = True, include_delegate_debug_data: bool = False
    ) -> list[dict[str, Any]]:
        unit = f" ({self._target.value})" if include_units else ""
        rows = []
        for block, event in self._events():
            row: dict[str, Any] = {"event_block_name": block.name, "event_name": event.name}
            row["raw"] = event.perf_data.raw
            row |= {f"{name}{unit}": getattr(event.perf_data, name) for name in TIMES}
            row["op_types"] = event.op_types
            row["delegate_debug_identifier"] = event.delegate_debug_identifier
            row["stack_traces"] = event.stack_traces
            row["module_hierarchy"] = event.module_hierarchy
            row["is_delegated_op"] = event.is_delegated_op
            row["delegate_backend_name"] = event.delegate_backend_name
            row["debug_data"] = event.debug_data
            row["start_time"] = event.start_time
            if include_delegate_debug_data:
                row["delegate_debug_metadatas"] = event.delegate_debug_metadatas
            rows.append(row)
        return rows

    def to_dataframe(
        self, include_units: bool = True, include_delegate_debug_data: bool = False
    ) -> Any:
        """Return a pandas.DataFrame with a row for each event of each block. Needs pandas."""
        rows = self._rows(include_units, include_delegate_debug_data)
        return _data_frame(rows, "to_dataframe", "print_data_tabular and save_data_to_tsv do")

    def _table(self, include_units: bool, include_delegate_debug_data: bool) -> list[list[str]]:
        rows = self._rows(include_units, include_delegate_debug_data)
        names = [name for name in (rows[0] if rows else {}) if name not in HIDDEN]
        return [names, *([_text(row[name]) for name in names] for row in rows)]

    def print_data_tabular(
        self,
        file: IO[str] | None = None,
        include_units: bool = True,
        include_delegate_debug_data: bool = False,
    ) -> None:
        """Print the events as a table that fits the terminal; names that do not are cut."""
        unit = f" ({self._target.value})" if include_units else ""
        rows = [
            [block.name, event.name, *(f"{getattr(event.perf_data, t):.4g}" for t in TIMES)]
            + [", ".join(event.op_types), ", ".join(_modules(event)), ", ".join(_lines(event))]
            + ([str(event.delegate_debug_metadatas)] if include_delegate_debug_data else [])
            for block, event in self._events()
        ]
        headings = ["block", "event", "p10" + unit, *TIMES[1:], "op_types", "module", "line"]
        headings += ["metadata"] if include_delegate_debug_data else []
        draw(headings, rows, (0, 1, 8, 9, 10, 11), file)

    def save_data_to_tsv(
        self,
        file: IO[str],
        include_units: bool = True,
        include_delegate_debug_data: bool = False,
    ) -> None:
        """Write the table, its cells separated by tabs, to an open text file."""
        table = self._table(include_units, include_delegate_debug_data)
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(["", *table[0]])
        writer.writerows([[str(index), *row] for index, row in enumerate(table[1:])])

    def find_total_for_module(self, module_name: str) -> float:
        """Return the time of a module with those in it, in the target's unit, medians added up.

        A kernel's own event is not counted beside the call that it is in.
        """
        total = 0.0
        for _, event in self._events():
            is_outermost = not event.is_delegated_op and not event.name.startswith("native_call_")
            if is_outermost and any(_is_in(name, module_name) for name in _modules(event)):
                total += event.perf_data.p50
        return total

    def get_op_list(
        self, event_block: str, show_delegated_ops: bool | None = True
    ) -> dict[str, list[Event]]:
        """Return the events of a block by operator, as the model's author called them."""
        names = [block.name for block in self.event_blocks]
        if event_block not in names:
            raise EtxError(f"no event block {event_block!r} (there are: {', '.join(names)})")
        found: dict[str, list[Event]] = {}
        for event in self.event_blocks[names.index(event_block)].events:
            if event.is_delegated_op and not show_delegated_ops:
                continue
            for name in event.op_types:
                found.setdefault(name, []).append(event)
        return found

    def get_exported_program(self, graph: str | None = None) -> Any:
        """Return a program of the ETRecord, `exported_program` or the Edge program by default.

        Needs etx-exir. Errors: EtxError without a record, or where it has none of that name.
        """
        from etx_devtools.inspector.numeric_gap import program_of

        return program_of(self._etrecord, graph)

    def numeric_gaps(
        self, distance: Any = "MSE", reference_graph: str | None = None, method: str | None = None
    ) -> list[dict[str, Any]]:
        """Do as `calculate_numeric_gap`; return rows, which need no pandas."""
        from etx_devtools.inspector.numeric_gap import gaps

        if self._record is None or self._buffer is None:
            raise EtxError(
                "a numeric gap needs an ETRecord with representative inputs (etrecord=) and the "
                "values of the dump (debug_buffer_path=); `etx compare` needs neither"
            )
        runs = [run for run in self.runs if run.is_execution]
        return gaps(
            self._etrecord, self._record, runs, self._buffer, distance, reference_graph, method
        )

    def calculate_numeric_gap(
        self,
        distance: Any,
        disable_debug_handle_valdiation: bool = False,
        reference_graph: str | None = None,
        *,
        method: str | None = None,
    ) -> Any:
        """Compare recorded values with the model's; return a pandas.DataFrame. Needs etx-exir.

        `distance` is MSE, L1, SNR, or another name of `etx compare`, or has a method
        `element_compare`. Of several methods `method` names one.
        """
        rows = self.numeric_gaps(distance, reference_graph, method)
        return _data_frame(rows, "calculate_numeric_gap", "numeric_gaps does")


def _data_frame(rows: list[dict[str, Any]], name: str, instead: str) -> Any:
    try:
        import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError as error:
        raise EtxError(
            f"{name} makes a pandas.DataFrame, and pandas is not installed; {instead} without"
        ) from error
    return pandas.DataFrame(rows)


def _is_in(path: str, module: str) -> bool:
    return module in ("", path) or path.startswith(module + ".")


def _modules(event: Event) -> Sequence[str]:
    """Return the paths of the innermost modules."""
    rows = [[*row.items()] for row in event.module_hierarchy.values() if row]
    innermost = [row[-1] for row in rows]
    paths = [value[0] if isinstance(value, tuple) else key for key, value in innermost]
    return list(dict.fromkeys(paths))


def _lines(event: Event) -> Sequence[str]:
    """Return file and line, the innermost of a stack."""
    found = []
    for text in event.stack_traces.values():
        frames = re.findall(r'File "(?:.*[/\\])?(.+)", line (\d+)', text)
        found.append(":".join(frames[-1]) if frames else text)
    return list(dict.fromkeys(found))


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
