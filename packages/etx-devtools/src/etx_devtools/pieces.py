# SPDX-License-Identifier: BSD-3-Clause
"""Cut a file into pieces: every byte belongs to exactly one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from etx_schema import (
    BackendDelegateInlineData,
    Buffer,
    DataLocation,
    ExecutionPlan,
    Instruction,
    Program,
    PteFile,
    Table,
)
from etx_schema.codec import Field
from etx_schema.decoder import Decoder
from etx_schema.pte_layout import PteLayout

T = TypeVar("T", bound=Table)


@dataclass(frozen=True)
class Piece:
    """A range of the file: what it is, and the index of what it belongs to.

    For `instruction` that is (method, instruction), for `constant`, `state`, `delegate` and
    `named data` an index into the file's lists, else nothing.
    """

    start: int
    end: int
    kind: str
    index: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.end - self.start


class _Tracer(Decoder):
    """Reads a program and notes which bytes each table, vector and string takes."""

    def __init__(self, view: memoryview) -> None:
        super().__init__(view, 0)
        self.pieces: list[Piece] = []
        self.owner: tuple[str, tuple[int, ...]] = ("tables", ())
        self.counts: dict[type[Table], int] = {}

    def note(self, start: int, size: int) -> None:
        """Add a range of the current owner."""
        self.pieces.append(Piece(start, start + size, *self.owner))

    def table(self, cls: type[T], offset: int) -> T:
        """Read a table, whose bytes and children belong to it when it is one that counts."""
        outer = self.owner
        number = self.counts.get(cls, 0)
        self.counts[cls] = number + 1
        if cls is ExecutionPlan:
            self.counts[Instruction] = 0
        elif cls is Instruction:
            self.owner = ("instruction", (self.counts[ExecutionPlan] - 1, number))
        elif cls is Buffer and number > 0:
            self.owner = ("constant", (number - 1,))
        elif cls is BackendDelegateInlineData:
            self.owner = ("inline delegate", (number,))
        value = super().table(cls, offset)
        self.owner = outer
        return value

    def vtable(self, name: str, offset: int) -> tuple[int, ...]:
        """Note the table and its vtable; a shared vtable belongs to no one."""
        slots = super().vtable(name, offset)
        place = offset - int.from_bytes(self.view[offset : offset + 4], "little", signed=True)
        self.pieces.append(Piece(place, place + 4 + 2 * len(slots), "tables"))
        self.note(offset, self.u16(place + 2))
        return slots

    def string(self, offset: int) -> str:
        """Note a string with its length and its final zero."""
        text = super().string(offset)
        self.note(offset, 4 + self.u32(offset) + 1)
        return text

    def vector(self, name: str, item: Field, offset: int) -> Any:
        """Note a vector with its length."""
        width = {"?": 1, "b": 1, "B": 1, "h": 2, "H": 2, "q": 8, "Q": 8, "d": 8}
        size = width.get(item.type, 4) if item.kind == "scalars" else 4
        size = 1 if item.kind == "opaque" else size
        self.note(offset, 4 + self.u32(offset) * size)
        return super().vector(name, item, offset)


def cut(view: memoryview, program: Program, layout: PteLayout, pte: PteFile) -> list[Piece]:
    """Return the pieces in the order of the file; `program` is as stored, `pte` as read."""
    pieces = [Piece(0, 8, "header")]
    if layout.header_size:
        pieces.append(Piece(8, 8 + layout.header_size, "header"))
    tracer = _Tracer(view[: layout.program_size])
    tracer.root(Program, None)
    pieces += tracer.pieces
    pieces += _segments(program, layout, pte)
    return list(_without_gaps(pieces, layout.file_size))


def _segments(program: Program, layout: PteLayout, pte: PteFile) -> Iterator[Piece]:
    starts = [layout.segment_base + segment.offset for segment in program.segments]
    tables = [("constant", table, pte.constants) for table in [program.constant_segment] if table]
    tables += [("state", table, pte.mutable_data) for table in program.mutable_data_segments]
    for kind, table, blobs in tables:
        for i, (offset, blob) in enumerate(zip(table.offsets[1:], blobs, strict=False)):
            start = starts[table.segment_index] + offset
            yield Piece(start, start + len(blob), kind, (i,))
    delegates: dict[int, int] = {}
    for plan in program.execution_plan:
        for delegate in plan.delegates:
            place = delegate.processed
            if place is not None and place.location == DataLocation.SEGMENT:
                delegates.setdefault(place.index, len(delegates))
    for segment, i in delegates.items():
        yield _whole(program, starts, segment, "delegate", i)
    for i, item in enumerate(program.named_data):
        yield _whole(program, starts, item.segment_index, "named data", i)


def _whole(program: Program, starts: list[int], segment: int, kind: str, index: int) -> Piece:
    start = starts[segment]
    return Piece(start, start + program.segments[segment].size, kind, (index,))


def _without_gaps(pieces: Iterable[Piece], size: int) -> Iterator[Piece]:
    """Clip pieces that overlap (the first one keeps the bytes) and fill gaps with padding."""
    position = 0
    for piece in sorted(pieces, key=lambda p: (p.start, -p.end)):
        if piece.start > position:
            yield Piece(position, piece.start, "padding")
            position = piece.start
        if piece.end > position:
            yield replace(piece, start=position)
            position = piece.end
    if position < size:
        yield Piece(position, size, "padding")
