# SPDX-License-Identifier: BSD-3-Clause
"""Files as bytes, in ExecuTorch's forms over ETX's reader and writer."""

from __future__ import annotations

import copy
import json
import struct
from dataclasses import dataclass, field
from typing import Any, ClassVar

from etx_schema import (
    BackendDelegateDataReference,
    Buffer,
    DataLocation,
    NamedBlob,
    Program,
    PteFile,
    SubsegmentOffsets,
    decode,
    encode,
    read_pte,
    serialize_pte,
)
from etx_schema.pte import HEADER, MAGIC

from etx_executorch.adapters.managers import with_blobs
from etx_executorch.adapters.named_data import DataEntry, DataError, NamedDataStoreOutput

MINIMUM = 24


@dataclass
class PTEFile:
    """A program with its blobs inside its tables, and the data beside it."""

    program: Program
    mutable_data: list[Buffer] | None = None
    named_data: Any = None


class Bytes(bytes):
    """Bytes that are also asked for by `bytes(x)` and `x.byte_size()`."""

    def byte_size(self) -> int:
        """Return their number."""
        return len(self)


def serialize_pte_binary(
    pte_file: PTEFile,
    *,
    extract_delegate_segments: bool = False,
    segment_alignment: int = 128,
    constant_tensor_alignment: int | None = None,
    delegate_alignment: int | None = None,
) -> Bytes:
    """Move the blobs out of the tables and write the file."""
    if (constant_tensor_alignment or 1).bit_count() != 1:
        raise DataError(
            f"constant_tensor_alignment={constant_tensor_alignment} is not a power of 2"
        )
    program = copy.deepcopy(pte_file.program)
    delegates: list[Any] = []
    if extract_delegate_segments:
        delegates = [each.data for each in program.backend_delegate_data]
        for plan in program.execution_plan:
            for each in plan.delegates:
                place = each.processed
                if place is not None and place.location == DataLocation.INLINE:
                    each.processed = BackendDelegateDataReference(DataLocation.SEGMENT, place.index)
        program.backend_delegate_data = []
    constants: list[Any] = [each.storage for each in program.constant_buffer[1:]]
    program.constant_buffer = []
    named = {}
    if pte_file.named_data is not None:
        output = pte_file.named_data
        for key, entry in output.pte_data.items():
            named[key] = NamedBlob(output.buffers[entry.buffer_index], entry.alignment or 16)
    mutable: list[Any] = [each.storage for each in (pte_file.mutable_data or [])[1:]]
    pte = PteFile(program, constants, mutable, delegates, named)
    options = {} if constant_tensor_alignment is None else {
        "constant_alignment": constant_tensor_alignment
    }  # fmt: skip
    return Bytes(serialize_pte(pte, segment_alignment=segment_alignment, **options))


def deserialize_pte_binary(data: bytes) -> PTEFile:
    """Read a file and put the blobs into the tables."""
    pte = read_pte(data)
    program = with_blobs(pte)
    program.constant_segment = SubsegmentOffsets()
    if not pte.constants:
        program.constant_buffer = []
    mutable = [Buffer(b""), *(Buffer(bytes(blob)) for blob in pte.mutable_data)]
    return PTEFile(program, mutable if pte.mutable_data else None, _stored(pte.named_data))


def _stored(named: dict[str, NamedBlob]) -> Any:
    if not named:
        return None
    buffers: list[bytes] = []
    entries = {}
    for key, blob in named.items():
        data = bytes(blob.data)
        if data not in buffers:
            buffers.append(data)
        entries[key] = DataEntry(buffers.index(data), blob.alignment, None)
    return NamedDataStoreOutput(buffers, entries, {})


def program_to_flatbuffer(program: Program, **_: Any) -> Any:
    """Encode the tables."""
    return Flat(encode(program, "ET12"))


def program_to_json(program: Program) -> str:
    """Write the tables as text, so that two can be compared."""
    return json.dumps(program, default=lambda item: getattr(item, "__dict__", str(item)))


@dataclass
class Flat:
    """The bytes of a flatbuffer."""

    data: bytes
    max_alignment: int = 16


def flatbuffer_to_program(data: bytes) -> Program:
    """Decode the tables."""
    return decode(Program, data, "ET12")


@dataclass
class ExtendedHeader:
    """The header behind the flatbuffer's first eight bytes."""

    EXPECTED_MAGIC: ClassVar[bytes] = MAGIC
    MINIMUM_LENGTH: ClassVar[int] = MINIMUM
    EXPECTED_LENGTH: ClassVar[int] = HEADER.size
    NUM_HEAD_BYTES: ClassVar[int] = 64

    program_size: int
    segment_base_offset: int
    segment_data_size: int
    magic: bytes = MAGIC
    length: int = field(default=HEADER.size)

    @classmethod
    def from_bytes(cls, data: bytes) -> ExtendedHeader:
        """Read it from its own first byte on."""
        if len(data) < MINIMUM:
            raise ValueError(f"expected a header of {MINIMUM} bytes or more, got {len(data)}")
        magic, length, size, base = struct.unpack_from("<4sIQQ", data)
        full = length > MINIMUM and len(data) >= HEADER.size
        return cls(size, base, struct.unpack_from("<Q", data, 24)[0] if full else 0, magic, length)

    def is_valid(self) -> bool:
        """Tell whether magic and length are right."""
        return self.magic == MAGIC and self.length >= MINIMUM

    def to_bytes(self) -> bytes:
        """Write it."""
        sizes = (self.program_size, self.segment_base_offset, self.segment_data_size)
        return HEADER.pack(MAGIC, HEADER.size, *sizes)


def extended_header(data: bytes) -> ExtendedHeader | None:
    """Read the header of a file, None when it has none."""
    found = ExtendedHeader.from_bytes(data[8:]) if len(data) >= 8 + MINIMUM else None
    return found if found is not None and found.is_valid() else None
