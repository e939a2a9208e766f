# SPDX-License-Identifier: BSD-3-Clause
"""Read the `.pte` container from untrusted bytes."""

from __future__ import annotations

from collections.abc import Iterator

from etx_schema._generated.program import (
    IDENTIFIER,
    DataLocation,
    Program,
    SubsegmentOffsets,
    Tensor,
)
from etx_schema.bundle import program_of
from etx_schema.codec import Blob, Table, keep_unknown
from etx_schema.decoder import decode
from etx_schema.dtypes import tensor_nbytes
from etx_schema.errors import ProgramError
from etx_schema.files import PathLike, load_bytes
from etx_schema.pte import PteFile
from etx_schema.pte_layout import PteLayout, read_layout
from etx_schema.segments import NamedBlob, SegmentReader


def tensors(program: Program) -> Iterator[Tensor]:
    """Yield every tensor value of every method."""
    for plan in program.execution_plan:
        for value in plan.values:
            if isinstance(value.val, Tensor):
                yield value.val


def read_program(view: memoryview) -> tuple[Program, PteLayout]:
    """Read the flatbuffer as it is stored, and where the segments are."""
    layout = read_layout(view)
    return decode(Program, view[: layout.program_size], IDENTIFIER), layout


def read_pte(source: PathLike | Blob) -> PteFile:
    """Read a `.pte`, or that in a bundle, from a path or bytes; blobs are views, not copies."""
    view = program_of(load_bytes(source))
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
    """Remember the newer fields of tables that the writer makes again, so that it refuses."""
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
