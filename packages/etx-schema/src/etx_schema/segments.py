# SPDX-License-Identifier: BSD-3-Clause
"""Place blobs behind a flatbuffer, and find them again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from etx_schema._generated.flat_tensor import TensorLayout
from etx_schema.codec import Blob
from etx_schema.errors import EtxError, ProgramError


@dataclass
class NamedBlob:
    """Bytes stored under a name; `layout` (in a `.ptd` only) says that they are a tensor."""

    data: Blob
    alignment: int = 16
    layout: TensorLayout | None = None


@dataclass
class SegmentWriter:
    """Collect segments in file order; each starts at a multiple of its alignment."""

    alignment: int
    base_alignment: int = 0
    size: int = 0
    places: list[tuple[int, int]] = field(default_factory=list)
    chunks: list[Blob] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_alignment(self.alignment)
        self.base_alignment = self.alignment

    def add(self, parts: Iterable[Blob], alignment: int = 1) -> int:
        """Append one segment made of `parts` and return its index."""
        check_alignment(alignment)
        step = math.lcm(self.alignment, alignment)
        self.base_alignment = math.lcm(self.base_alignment, step)
        start = align(self.size, step)
        self.chunks.append(bytes(start - self.size))
        content = list(parts)
        size = sum(len(part) for part in content)
        if size == 0:
            self.chunks.pop()
            start = self.size
        self.chunks += content
        self.places.append((start, size))
        self.size = start + size
        return len(self.places) - 1

    def add_unique(self, blobs: Sequence[tuple[Blob, int]]) -> list[int]:
        """Append one segment for each different blob; return the index of each."""
        groups: dict[bytes | int, list[int]] = {}
        for i, key in enumerate(_content_keys([data for data, _ in blobs])):
            groups.setdefault(key, []).append(i)
        indices = [0] * len(blobs)
        for members in groups.values():
            step = math.lcm(*(blobs[i][1] for i in members))
            index = self.add([blobs[members[0]][0]], step)
            for i in members:
                indices[i] = index
        return indices


def _content_keys(blobs: Sequence[Blob]) -> list[bytes | int]:
    import hashlib

    lengths: dict[int, int] = {}
    for blob in blobs:
        lengths[len(blob)] = lengths.get(len(blob), 0) + 1
    return [
        hashlib.sha256(blob).digest() if lengths[len(blob)] > 1 else i
        for i, blob in enumerate(blobs)
    ]


def align(size: int, alignment: int) -> int:
    """Round `size` up."""
    return -(-size // alignment) * alignment


def check_alignment(alignment: int) -> None:
    """Raise unless `alignment` is a positive integer."""
    if not isinstance(alignment, int) or alignment < 1:
        raise EtxError(f"expected a positive integer as the alignment, got {alignment!r}")


def packed(blobs: Sequence[Blob], alignment: int) -> tuple[list[int], list[Blob]]:
    """Lay tensors into one segment: the offsets (entry 0 reserved) and the bytes with padding."""
    offsets, parts, size = [0], [], 0
    for blob in blobs:
        start = align(size, alignment)
        parts += [bytes(start - size), blob] if start > size else [blob]
        offsets.append(start)
        size = start + len(blob)
    return offsets, parts


def flat(blob: Blob) -> memoryview:
    """View any C-contiguous buffer as bytes."""
    view = memoryview(blob)
    if view.nbytes == 0:
        return memoryview(b"")
    return view.cast("B")


@dataclass
class SegmentReader:
    """The segments of a file, by index."""

    view: memoryview
    base: int
    size: int
    places: list[tuple[int, int]]

    def get(self, index: int, what: str) -> memoryview:
        """Return segment `index`; raise when there is no such segment or it is out of bounds."""
        if not 0 <= index < len(self.places):
            raise ProgramError(
                f"{what} is in segment {index}, but there are {len(self.places)} segments"
            )
        offset, size = self.places[index]
        if offset + size > self.size or self.base + offset + size > len(self.view):
            raise ProgramError(
                f"segment {index} ({what}) takes {size} bytes at {offset} of {self.size} bytes "
                f"of segment data in a file of {len(self.view)}; the file is truncated or damaged",
                self.base + offset,
            )
        return self.view[self.base + offset : self.base + offset + size]

    def __iter__(self) -> Iterator[memoryview]:
        for index in range(len(self.places)):
            yield self.get(index, "data")
