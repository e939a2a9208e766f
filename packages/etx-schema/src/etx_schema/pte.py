# SPDX-License-Identifier: BSD-3-Clause
"""The `.pte` container: a program flatbuffer, an extended header, and segments; its writer."""

from __future__ import annotations

import struct
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
)
from etx_schema.codec import Blob, refuse_unknown
from etx_schema.encoder import Encoder
from etx_schema.errors import EtxError
from etx_schema.files import PathLike, write_atomically
from etx_schema.segments import NamedBlob, SegmentWriter, align, flat, packed

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
                    f"method {plan.name!r}: delegate {delegate.id!r} refers to blob {place.index}, "
                    f"but the file has {len(references)} delegate blobs"
                )
            delegate = replace(delegate, processed=references[place.index])
        delegates.append(delegate)
    return replace(plan, delegates=delegates)
