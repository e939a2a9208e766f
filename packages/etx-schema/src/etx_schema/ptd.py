# SPDX-License-Identifier: BSD-3-Clause
"""The `.ptd` container: tensors and blobs by name, outside of a program."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from etx_schema._generated.flat_tensor import IDENTIFIER, DataSegment, FlatTensor, NamedData
from etx_schema.codec import Blob, UnknownField, refuse_unknown
from etx_schema.decoder import decode
from etx_schema.encoder import Encoder
from etx_schema.errors import ProgramError
from etx_schema.files import PathLike, load_bytes, write_atomically
from etx_schema.segments import NamedBlob, SegmentReader, SegmentWriter, align, flat

MAGIC = b"FH01"
HEADER = struct.Struct("<4sIQQQQ")


@dataclass
class PtdFile:
    """A `.ptd` in memory: each entry's bytes, and its `layout` when it is a tensor."""

    named_data: dict[str, NamedBlob] = field(default_factory=dict)
    version: int = 0
    unknown_fields: tuple[UnknownField, ...] = field(default=(), repr=False)


def serialize_ptd(ptd: PtdFile, *, segment_alignment: int = 128) -> bytes:
    """Return the bytes of the file; equal inputs give equal bytes."""
    return b"".join(_chunks(ptd, segment_alignment))


def write_ptd(ptd: PtdFile, path: PathLike, *, segment_alignment: int = 128) -> None:
    """Write the file whole or not at all, without a second copy of the blobs in memory."""
    write_atomically(path, _chunks(ptd, segment_alignment))


def _chunks(ptd: PtdFile, segment_alignment: int) -> list[Blob]:
    if ptd.unknown_fields:
        refuse_unknown(ptd.unknown_fields[0])
    segments = SegmentWriter(segment_alignment)
    blobs = [(flat(blob.data), blob.alignment) for blob in ptd.named_data.values()]
    indices = segments.add_unique(blobs)
    root = FlatTensor(
        version=ptd.version,
        segments=[DataSegment(offset=offset, size=size) for offset, size in segments.places],
        named_data=[
            NamedData(key=name, segment_index=index, tensor_layout=blob.layout)
            for (name, blob), index in zip(ptd.named_data.items(), indices, strict=True)
        ],
    )
    encoder = Encoder()
    body = encoder.encode(root, IDENTIFIER)
    header_size = align(HEADER.size, max(16, encoder.alignment))
    base = align(len(body) + header_size, segments.base_alignment)
    (start,) = struct.unpack_from("<I", body)
    header = HEADER.pack(MAGIC, HEADER.size, header_size, len(body), base, segments.size)
    return [
        struct.pack("<I", start + header_size) + body[4:8],
        header.ljust(header_size, b"\0"),
        memoryview(body)[8:],
        bytes(base - len(body) - header_size),
        *segments.chunks,
    ]


@dataclass
class PtdLayout:
    """Where the parts of a `.ptd` are, in bytes from the file's start."""

    file_size: int
    header_size: int
    program_size: int
    segment_base: int
    segment_data_size: int


def read_ptd_root(view: memoryview) -> tuple[FlatTensor, PtdLayout]:
    """Read the flatbuffer as it is stored, and where the segments are."""
    if len(view) < 8 or view[4:8] != IDENTIFIER.encode():
        found = bytes(view[4:8])
        raise ProgramError(f"not a .ptd file: expected {IDENTIFIER!r}, found {found!r}", 4)
    if len(view) < 64 or view[8:12] != MAGIC:
        raise ProgramError(f"expected the header {MAGIC!r} and at least 64 bytes", 8)
    _, length, offset, size, base, data_size = HEADER.unpack_from(view, 8)
    if length < HEADER.size:
        raise ProgramError(f"the header has length {length}, expected {HEADER.size} or more", 12)
    end = offset + size
    if end > len(view) or base + data_size > len(view):
        raise ProgramError(
            f"the header says that tables take {end} bytes and data {data_size} at {base}, the "
            f"file has {len(view)}; it is truncated or damaged",
            16,
        )
    root = decode(FlatTensor, view[:end], IDENTIFIER)
    return root, PtdLayout(len(view), length, end, base, data_size)


def read_ptd(source: PathLike | Blob) -> PtdFile:
    """Read a `.ptd` from a path or from bytes; blobs are views of it, not copies."""
    view = load_bytes(source)
    root, layout = read_ptd_root(view)
    if root.version > 0:
        raise ProgramError(f"version {root.version} of .ptd is newer than this etx-schema knows")
    places = [(segment.offset, segment.size) for segment in root.segments]
    reader = SegmentReader(view, layout.segment_base, layout.segment_data_size, places)
    ptd = PtdFile(version=root.version)
    for table in (root, *root.segments, *root.named_data):
        ptd.unknown_fields += table.unknown_fields
    for item in root.named_data:
        data = reader.get(item.segment_index, f"{item.key!r}")
        ptd.named_data[item.key or ""] = NamedBlob(data, layout=item.tensor_layout)
    return ptd
