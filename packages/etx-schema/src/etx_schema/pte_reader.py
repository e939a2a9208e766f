# SPDX-License-Identifier: BSD-3-Clause
"""Read the `.pte` container from untrusted bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from etx_schema._generated.program import (
    IDENTIFIER,
    DataLocation,
    Program,
    SubsegmentOffsets,
    Tensor,
)
from etx_schema.codec import Blob, Table, keep_unknown
from etx_schema.decoder import decode
from etx_schema.dtypes import tensor_nbytes
from etx_schema.errors import ProgramError
from etx_schema.files import PathLike, load_bytes
from etx_schema.pte import MAGIC, PteFile
from etx_schema.segments import NamedBlob, SegmentReader


def tensors(program: Program) -> Iterator[Tensor]:
    """Yield every tensor value of every method."""
    for plan in program.execution_plan:
        for value in plan.values:
            if isinstance(value.val, Tensor):
                yield value.val


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


def read_program(view: memoryview) -> tuple[Program, PteLayout]:
    """Read the flatbuffer as it is stored, and where the segments are."""
    layout = read_layout(view)
    return decode(Program, view[: layout.program_size], IDENTIFIER), layout


def read_pte(source: PathLike | Blob) -> PteFile:
    """Read a `.pte` from a path or from bytes; blobs are views of it, not copies."""
    view = load_bytes(source)
    return assemble(view, *read_program(view))


def assemble(view: memoryview, program: Program, layout: PteLayout) -> PteFile:
    """Split the segments of a file into blobs; `program` becomes part of the result."""
    places = [(segment.offset, segment.size) for segment in program.segments]
    reader = SegmentReader(view, layout.segment_base, layout.segment_data_size, places)
    pte = PteFile(program)
    pte.constants = _read_constants(program, reader)
    pte.mutable_data = _read_mutable(program, reader)
    pte.delegates = _read_delegates(program, reader)
    for item in program.named_data:
        data = reader.get(item.segment_index, f"named data {item.key!r}")
        pte.named_data[item.key or ""] = NamedBlob(data)
    _keep_unknown(program)
    program.constant_buffer, program.segments, program.named_data = [], [], []
    program.constant_segment, program.mutable_data_segments = None, []
    return pte


def _keep_unknown(program: Program) -> None:
    """Remember the newer fields of tables that the writer makes anew, so that it refuses."""
    dropped: list[Table] = [*program.segments, *program.named_data, *program.constant_buffer]
    dropped += program.mutable_data_segments
    if program.constant_segment is not None:
        dropped.append(program.constant_segment)
    for plan in program.execution_plan:
        dropped += [each.processed for each in plan.delegates if each.processed is not None]
    for table in dropped:
        keep_unknown(program, table.unknown_fields)


def _read_constants(program: Program, reader: SegmentReader) -> list[Blob]:
    table = program.constant_segment
    if program.constant_buffer:
        if table is not None and len(table.offsets) > 1:
            raise ProgramError("the program has both a constant buffer and a constant segment")
        return [buffer.storage for buffer in program.constant_buffer[1:]]
    if table is None or len(table.offsets) <= 1:
        return []
    sizes = _sizes(program, planned=False)
    return _split(table, reader, sizes, "the constant segment")


def _read_mutable(program: Program, reader: SegmentReader) -> list[Blob]:
    if not program.mutable_data_segments:
        return []
    if len(program.mutable_data_segments) > 1:
        count = len(program.mutable_data_segments)
        raise ProgramError(f"the program has {count} mutable-data segments; one is supported")
    sizes = _sizes(program, planned=True)
    return _split(program.mutable_data_segments[0], reader, sizes, "the mutable-data segment")


def _sizes(program: Program, *, planned: bool) -> dict[int, int]:
    """Return the bytes that tensors take from each entry of a segment."""
    sizes: dict[int, int] = {}
    for tensor in tensors(program):
        info = tensor.extra_tensor_info
        if info is not None and info.location:
            continue
        index = tensor.data_buffer_idx
        if index and (tensor.allocation_info is not None) == planned:
            sizes[index] = max(sizes.get(index, 0), tensor_nbytes(tensor))
    return sizes


def _split(
    table: SubsegmentOffsets, reader: SegmentReader, sizes: dict[int, int], what: str
) -> list[Blob]:
    segment = reader.get(table.segment_index, what)
    starts = sorted(set(table.offsets[1:]))
    ends = dict(zip(starts, [*starts[1:], len(segment)], strict=False))
    blobs: list[Blob] = []
    for i, start in enumerate(table.offsets[1:], 1):
        size = sizes.get(i, ends[start] - start)
        if size < 0 or start + size > len(segment):
            raise ProgramError(
                f"entry {i} of {what} takes {size} bytes at {start}, the segment has {len(segment)}"
            )
        blobs.append(segment[start : start + size])
    return blobs


def _read_delegates(program: Program, reader: SegmentReader) -> list[Blob]:
    blobs: list[Blob] = []
    known: dict[int, int] = {}
    for plan in program.execution_plan:
        for delegate in plan.delegates:
            place = delegate.processed
            if place is None or place.location != DataLocation.SEGMENT:
                continue
            if place.index not in known:
                known[place.index] = len(blobs)
                blobs.append(reader.get(place.index, f"the blob of delegate {delegate.id!r}"))
            place.index = known[place.index]
    return blobs
