# SPDX-License-Identifier: BSD-3-Clause
"""Where the parts of a `.pte` lie: its header, its segments and what they hold."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from etx_schema._generated.program import (
    IDENTIFIER,
    DataLocation,
    Program,
)
from etx_schema.errors import ProgramError
from etx_schema.pte import MAGIC


@dataclass
class PteLayout:
    """Where the parts of a `.pte` are, in bytes from the file's start."""

    file_size: int
    header_size: int
    program_size: int
    segment_base: int
    segment_data_size: int


def read_layout(view: memoryview) -> PteLayout:
    """Read and check the header; a file without one is all program."""
    if len(view) < 8 or view[4:8] != IDENTIFIER.encode():
        found = bytes(view[4:8])
        raise ProgramError(f"not a .pte file: expected {IDENTIFIER!r}, found {found!r}", 4)
    size = len(view)
    if len(view) < 8 + 24 or view[8:12] != MAGIC:
        return PteLayout(size, 0, size, 0, 0)
    (length,) = struct.unpack_from("<I", view, 12)
    if length < 24 or 8 + length > size:
        raise ProgramError(f"the extended header has length {length}, expected 24 or more", 12)
    program_size, base = struct.unpack_from("<QQ", view, 16)
    data_size = struct.unpack_from("<Q", view, 32)[0] if length >= 32 else 0
    if length < 32 and base:
        data_size = max(0, size - base)
    if program_size > size or program_size < 8 + length:
        raise ProgramError(
            f"the header says that the program takes {program_size} bytes, the file has {size}; "
            "it is truncated or damaged",
            16,
        )
    if data_size == 0 and base > 0:
        data_size = max(0, size - base)
    if data_size and (base < program_size or base + data_size > size):
        raise ProgramError(
            f"the header says that segments take {data_size} bytes at {base}, the file has "
            f"{size}; it is truncated or damaged",
            24,
        )
    return PteLayout(size, length, program_size, base, data_size)


@dataclass(frozen=True)
class SegmentInfo:
    """One segment: its place in the file, and what it holds for whom."""

    offset: int
    size: int
    kind: str
    names: tuple[str, ...] = ()


def segment_table(program: Program, layout: PteLayout) -> list[SegmentInfo]:
    """Describe the segments of a program as it is stored."""
    users: dict[int, tuple[str, list[str]]] = {}

    def use(index: int, kind: str, name: str) -> None:
        names = users.setdefault(index, (kind, []))[1]
        if name and name not in names:
            names.append(name)

    if program.constant_segment is not None:
        use(program.constant_segment.segment_index, "constants", "")
    for table in program.mutable_data_segments:
        use(table.segment_index, "initial values", "")
    for plan in program.execution_plan:
        for delegate in plan.delegates:
            place = delegate.processed
            if place is not None and place.location == DataLocation.SEGMENT:
                use(place.index, "delegate", delegate.id or "")
    for item in program.named_data:
        use(item.segment_index, "named data", item.key or "")
    infos = []
    for i, segment in enumerate(program.segments):
        kind, names = users.get(i, ("unused", []))
        offset = layout.segment_base + segment.offset
        infos.append(SegmentInfo(offset, segment.size, kind, tuple(names)))
    return infos
