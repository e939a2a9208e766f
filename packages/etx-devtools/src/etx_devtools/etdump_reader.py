# SPDX-License-Identifier: BSD-3-Clause
"""Read an ETDump's events as columns of NumPy, and its values as arrays."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import numpy as np
from etx_schema import Blob, ProgramError
from etx_schema.decoder import other_kind
from etx_schema.files import load_bytes

from etx_devtools.columns import Columns, Places
from etx_devtools.recorded import Run, Seen, Span, ThreadSpan

END_OF_THREAD = 9
"""The field that only debug events of threads have."""


def read(source: str | os.PathLike[str] | Blob) -> list[Run]:
    """Read a file or its bytes. Errors: ProgramError with the byte."""
    columns = _columns(load_bytes(source))
    (version,), (list_place,) = columns.slots(_root(columns), 2)
    number = int(columns.numbers(np.array([version]), "u4", 0)[0])
    if number != 0:
        raise ProgramError(f"an ETDump of version {number}, expected 0", int(version))
    tables = columns.vector(int(columns.targets(np.array([list_place]))[0]))
    names, bundled, allocators, events = columns.slots(tables, 4)
    runs = [
        Run(name or "", bundled_input_index=index)
        for name, index in zip(
            columns.texts(columns.targets(names)),
            columns.numbers(bundled, "i4", -1).tolist(),
            strict=True,
        )
    ]
    _read_notes(columns, runs, columns.targets(allocators))
    _read_events(columns, runs, [columns.vector(p) for p in columns.targets(events).tolist()])
    return runs


def _columns(data: Blob) -> Columns:
    view = memoryview(data).cast("B")
    if len(view) < 12:
        raise ProgramError(f"an ETDump has 12 bytes or more, got {len(view)}", 0)
    size = int.from_bytes(view[:4], "little")
    if size > len(view) - 4:
        raise ProgramError(f"the length prefix says {size} bytes, {len(view) - 4} follow", 0)
    if bytes(view[8:12]) != b"ED00":
        raise ProgramError(other_kind(view, "ED00", bytes(view[8:12])), 8)
    if size < 8:
        raise ProgramError(f"the length prefix says {size} bytes, expected 8 or more", 0)
    return Columns(view[: size + 4])


def _root(columns: Columns) -> Places:
    return columns.targets(np.array([4], np.int64))


def _read_notes(columns: Columns, runs: Sequence[Run], places: Places) -> None:
    lists = [columns.vector(place) for place in places.tolist()]
    (names,) = columns.slots(_joined(lists), 1)
    texts = iter(columns.texts(columns.targets(names)))
    for run, allocators in zip(runs, lists, strict=True):
        for _ in range(len(allocators)):
            _read_note(run, next(texts) or "")


def _joined(lists: Sequence[Places]) -> Places:
    return np.concatenate([np.zeros(0, np.int64), *lists])


def _read_note(run: Run, text: str) -> None:
    """Take what ETX's runtime writes where ExecuTorch's names allocators."""
    if text.startswith("etx method="):
        run.method = text.removeprefix("etx method=")
    elif match := re.fullmatch(r"etx missing events=(\d+) bytes=(\d+)", text):
        run.missing_events, run.missing_bytes = map(int, match.groups())
    elif match := re.fullmatch(r"etx failed error=(\d+) instruction=(\d+)", text):
        run.failure = int(match[1]), int(match[2])
    elif match := re.fullmatch(r"etx scratch bytes=(\d+) instruction=(\d+)", text):
        run.scratch = int(match[1]), int(match[2])


def _read_events(columns: Columns, runs: Sequence[Run], lists: Sequence[Places]) -> None:
    """Fill in the events of all runs; a text that many of them have is read once."""
    profiles, _, debugs = (columns.targets(places) for places in columns.slots(_joined(lists), 3))
    is_loop = np.zeros(len(debugs), bool)
    is_loop[debugs != 0] = columns.slots(debugs[debugs != 0], 10)[END_OF_THREAD] != 0
    loops, debugs = np.where(is_loop, debugs, 0), np.where(is_loop, 0, debugs)
    spans = iter(_spans(columns, profiles[profiles != 0]))
    seen = iter(_seen(columns, debugs[debugs != 0]))
    threads = iter(_threads(columns, loops[loops != 0]))
    begin = 0
    for run, events in zip(runs, lists, strict=True):
        end = begin + len(events)
        run.spans = [next(spans) for _ in range(np.count_nonzero(profiles[begin:end]))]
        run.seen = [next(seen) for _ in range(np.count_nonzero(debugs[begin:end]))]
        run.threads = [next(threads) for _ in range(np.count_nonzero(loops[begin:end]))]
        begin = end


def _spans(columns: Columns, tables: Places) -> list[Span]:
    slots = columns.slots(tables, 8)
    names, chains, instructions, numbers, texts, metadata, starts, ends = slots
    delegates = _delegates(columns, numbers, texts)
    labels = [
        name or ("" if delegate is None else str(delegate))
        for name, delegate in zip(columns.texts(columns.targets(names)), delegates, strict=True)
    ]
    return list(
        map(
            Span,
            labels,
            columns.numbers(chains, "i4", 0).tolist(),
            columns.numbers(instructions, "i4", -1).tolist(),
            columns.numbers(starts, "u8", 0).tolist(),
            columns.numbers(ends, "u8", 0).tolist(),
            delegates,
            columns.blobs(columns.targets(metadata)),
        )
    )


def _seen(columns: Columns, tables: Places) -> list[Seen]:
    chains, instructions, entries, numbers, texts = columns.slots(tables, 5)
    chain = columns.numbers(chains, "i8", 0)
    return list(
        map(
            Seen,
            chain.tolist(),
            columns.numbers(instructions, "i4", -1).tolist(),
            _delegates(columns, numbers, texts),
            [columns.view] * len(tables),
            columns.targets(entries).tolist(),
        )
    )


def _threads(columns: Columns, tables: Places) -> list[ThreadSpan]:
    kinds = ("i8", 0), ("i4", -1), ("u4", 0), ("u8", 0), ("u8", 0), ("u8", 0)
    slots = columns.slots(tables, 10)
    slots[2:] = slots[6:]
    members = [
        columns.numbers(places, kind, absent).tolist()
        for places, (kind, absent) in zip(slots, kinds, strict=True)
    ]
    return list(map(ThreadSpan, *members))


def _delegates(columns: Columns, numbers: Places, texts: Places) -> list[str | int | None]:
    """Return how delegates call what they tell of: a text, or a number that is not -1."""
    return [
        text if text is not None else None if number == -1 else number
        for text, number in zip(
            columns.texts(columns.targets(texts)),
            columns.numbers(numbers, "i4", -1).tolist(),
            strict=True,
        )
    ]
