# SPDX-License-Identifier: BSD-3-Clause
"""The `.pte` container: a program flatbuffer, an extended header, and segments."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from etx_schema._generated.program import (
    IDENTIFIER,
    BackendDelegateDataReference,
    BackendDelegateInlineData,
    DataLocation,
    DataSegment,
    ExecutionPlan,
    NamedData,
    Program,
    SubsegmentOffsets,
    Tensor,
)
from etx_schema.codec import Blob, Encoder, Table, keep_unknown, refuse_unknown
from etx_schema.decode import decode
from etx_schema.dtypes import tensor_nbytes
from etx_schema.errors import EtxError, ProgramError
from etx_schema.files import PathLike, load_bytes, write_atomically
from etx_schema.segments import NamedBlob, SegmentReader, SegmentWriter, align, flat, packed

MAGIC = b"eh00"
HEADER = struct.Struct("<4sIQQQ")


@dataclass
class PteFile:
    """A `.pte` in memory.

    Constant tensor `data_buffer_idx` i > 0 is `constants[i - 1]`; of a planned tensor it is
    `mutable_data[i - 1]`. A delegate with `processed` (SEGMENT, i) has the blob `delegates[i]`.
    The writer fills the program's own lists of segments, offsets and named data.
    """

    program: Program
    constants: list[Blob] = field(default_factory=list)
    mutable_data: list[Blob] = field(default_factory=list)
    delegates: list[Blob] = field(default_factory=list)
    named_data: dict[str, NamedBlob] = field(default_factory=dict)


def serialize_pte(
    pte: PteFile, *, segment_alignment: int = 128, constant_alignment: int = 16
) -> bytes:
    """Return the bytes of the file; equal inputs give equal bytes."""
    return b"".join(_chunks(pte, segment_alignment, constant_alignment))


def write_pte(
    pte: PteFile, path: PathLike, *, segment_alignment: int = 128, constant_alignment: int = 16
) -> None:
    """Write the file whole or not at all, without a second copy of the blobs in memory."""
    write_atomically(path, _chunks(pte, segment_alignment, constant_alignment))


def _chunks(pte: PteFile, segment_alignment: int, constant_alignment: int) -> list[Blob]:
    program, segments = _placed(pte, segment_alignment, constant_alignment)
    encoder = Encoder(by_size=False)
    body = encoder.encode(program, IDENTIFIER)
    if segments.size == 0:
        return [body]
    header_size = align(HEADER.size, max(16, encoder.alignment))
    size = len(body) + header_size
    base = align(size, segments.base_alignment)
    (root,) = struct.unpack_from("<I", body)
    header = HEADER.pack(MAGIC, HEADER.size, size, base, segments.size)
    return [
        struct.pack("<I", root + header_size) + body[4:8],
        header.ljust(header_size, b"\0"),
        memoryview(body)[8:],
        bytes(base - size),
        *segments.chunks,
    ]


def _placed(
    pte: PteFile, segment_alignment: int, constant_alignment: int
) -> tuple[Program, SegmentWriter]:
    segments = SegmentWriter(segment_alignment)
    offsets, parts = packed([flat(blob) for blob in pte.constants], constant_alignment)
    constants = SubsegmentOffsets(segment_index=segments.add(parts), offsets=offsets)
    mutable: list[SubsegmentOffsets] = []
    if pte.mutable_data:
        offsets, parts = packed([flat(blob) for blob in pte.mutable_data], 1)
        mutable.append(SubsegmentOffsets(segment_index=segments.add(parts), offsets=offsets))
    inline = list(pte.program.backend_delegate_data)
    references = _place_delegates(pte, segments, inline)
    named: list[NamedData] = []
    for name, blob in pte.named_data.items():
        if blob.layout is not None:
            raise EtxError(f"named data {name!r}: only a .ptd can hold a tensor layout")
    blobs = [(flat(blob.data), blob.alignment) for blob in pte.named_data.values()]
    for name, index in zip(pte.named_data, segments.add_unique(blobs), strict=True):
        named.append(NamedData(key=name, segment_index=index))
    if pte.program.unknown_fields:
        refuse_unknown(pte.program.unknown_fields[0])
    program = replace(
        pte.program,
        execution_plan=[_relocated(plan, references) for plan in pte.program.execution_plan],
        constant_buffer=[],
        backend_delegate_data=inline,
        segments=[DataSegment(offset=offset, size=size) for offset, size in segments.places],
        constant_segment=constants,
        mutable_data_segments=mutable,
        named_data=named,
    )
    return program, segments


def _place_delegates(
    pte: PteFile, segments: SegmentWriter, inline: list[BackendDelegateInlineData]
) -> list[BackendDelegateDataReference]:
    blobs = [flat(blob) for blob in pte.delegates]
    indices = iter(segments.add_unique([(blob, 1) for blob in blobs if len(blob)]))
    references = []
    for blob in blobs:
        if len(blob):
            reference = BackendDelegateDataReference(DataLocation.SEGMENT, next(indices))
        else:
            reference = BackendDelegateDataReference(DataLocation.INLINE, len(inline))
            inline.append(BackendDelegateInlineData())
        references.append(reference)
    return references


def _relocated(
    plan: ExecutionPlan, references: list[BackendDelegateDataReference]
) -> ExecutionPlan:
    if not plan.delegates:
        return plan
    if plan.unknown_fields:
        refuse_unknown(plan.unknown_fields[0])
    delegates = []
    for delegate in plan.delegates:
        place = delegate.processed
        if place is not None and place.location == DataLocation.SEGMENT:
            if delegate.unknown_fields:
                refuse_unknown(delegate.unknown_fields[0])
            if not 0 <= place.index < len(references):
                raise EtxError(
                    f"method {plan.name!r}: delegate {delegate.id!r} wants blob {place.index}, "
                    f"but the file has {len(references)} delegate blobs"
                )
            delegate = replace(delegate, processed=references[place.index])
        delegates.append(delegate)
    return replace(plan, delegates=delegates)


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


def read_program(view: memoryview) -> tuple[Program, PteLayout]:
    """Read the flatbuffer as it is stored, and where the segments are."""
    layout = read_layout(view)
    return decode(Program, view[: layout.program_size], IDENTIFIER), layout


def read_pte(source: PathLike | Blob) -> PteFile:
    """Read a `.pte` from a path or from bytes; blobs are views of it, not copies."""
    view = load_bytes(source)
    program, layout = read_program(view)
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
    ends = dict(zip(starts, [*starts[1:], len(segment)], strict=True))
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
