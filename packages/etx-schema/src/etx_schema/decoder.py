# SPDX-License-Identifier: BSD-3-Clause
"""Read flatbuffers from untrusted bytes: whatever they hold, the result is a table or an error."""

from __future__ import annotations

import struct
from typing import Any, TypeVar

from etx_schema.codec import Blob, Field, Table, UnknownField, UnknownMember, keep_unknown
from etx_schema.errors import ProgramError

T = TypeVar("T", bound=Table)

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
KINDS = {
    "ET12": "a program (.pte)",
    "BP08": "a bundled program (.bpte)",
    "ED00": "an ETDump (.etdp)",
    "FT01": "weights beside a program (.ptd)",
}
"""The files of the schema by their identifiers, which stand at byte 4, or 8 after a length."""
_SCALARS = {form: struct.Struct("<" + form) for form in "?bBhHiIqQfd"}


def decode(cls: type[T], data: Blob, identifier: str | None = None, *, start: int = 0) -> T:
    """Read the root table of the flatbuffer in `data[start:]`; offsets in errors count from 0."""
    return Decoder(data, start).root(cls, identifier)


def decode_size_prefixed(cls: type[T], data: Blob, identifier: str | None = None) -> T:
    """Read a flatbuffer that starts with its own length."""
    decoder = Decoder(data, 0)
    size = decoder.u32(0)
    if size > len(decoder.view) - 4:
        raise ProgramError(
            f"the length prefix says {size} bytes, {len(decoder.view) - 4} follow", 0
        )
    return Decoder(decoder.view[: size + 4], 4).root(cls, identifier)


def other_kind(view: memoryview, identifier: str, found: bytes) -> str:
    """Say that `identifier` was expected, and what `view` is instead, as far as it is known."""
    text = f"expected identifier {identifier!r}, found {found!r}"
    places = (bytes(view[at : at + 4]).decode("latin-1") for at in (4, 8))
    kind = next((KINDS[place] for place in places if place in KINDS), "")
    if not kind or identifier not in KINDS:
        return text
    return f"{text}: this is {kind}, not {KINDS[identifier]}"


class Decoder:
    """A bounded view of one flatbuffer.

    The tables and vectors read may add up to twice the bytes there are, so that a small file whose
    offsets all point at the same place cannot ask for unbounded work.
    """

    def __init__(self, data: Blob, start: int) -> None:
        self.view = memoryview(data).cast("B")
        self.start = start
        self.budget = 2 * len(self.view) + 4096
        self.vtables: dict[int, tuple[int, tuple[int, ...]]] = {}

    def root(self, cls: type[T], identifier: str | None) -> T:
        """Check the identifier and read the root table."""
        start = self.start
        self.check(start, 8, "the flatbuffer's first 8 bytes")
        if identifier is not None:
            found = bytes(self.view[start + 4 : start + 8])
            if found != identifier.encode():
                raise ProgramError(other_kind(self.view, identifier, found), start + 4)
        return self.table(cls, start + self.u32(start))

    def check(self, offset: int, size: int, what: str, align: int = 1) -> None:
        """Raise unless `size` bytes at `offset` are inside and `offset` a multiple of `align`."""
        if offset < self.start or offset + size > len(self.view):
            raise ProgramError(
                f"{what} ({size} bytes) do not fit into the {len(self.view)} bytes there are",
                offset,
            )
        if offset % align:
            raise ProgramError(f"{what} must start at a multiple of {align}", offset)

    def spend(self, size: int, offset: int) -> None:
        """Count `size` bytes as read."""
        self.budget -= size
        if self.budget < 0:
            raise ProgramError("too many offsets lead to the same bytes", offset)

    def u16(self, offset: int) -> int:
        """Read a uint16."""
        self.check(offset, 2, "a number", 2)
        return int(_U16.unpack_from(self.view, offset)[0])

    def u32(self, offset: int) -> int:
        """Read a uint32."""
        self.check(offset, 4, "a number", 4)
        return int(_U32.unpack_from(self.view, offset)[0])

    def follow(self, offset: int) -> int:
        """Return where the relative offset at `offset` leads."""
        return offset + self.u32(offset)

    def vtable(self, name: str, offset: int) -> tuple[int, ...]:
        """Return the field offsets of the table at `offset`, 0 for absent ones."""
        self.check(offset, 4, f"table {name}", 4)
        place = offset - int(_I32.unpack_from(self.view, offset)[0])
        if place not in self.vtables:
            self.vtables[place] = self.read_vtable(name, place)
        table_size, slots = self.vtables[place]
        self.check(offset, table_size, f"table {name}")
        self.spend(max(table_size, 4), offset)
        return slots

    def read_vtable(self, name: str, place: int) -> tuple[int, tuple[int, ...]]:
        """Return the size of the tables that have this vtable, and their field offsets."""
        self.check(place, 4, f"the vtable of {name}", 2)
        size, table_size = struct.unpack_from("<HH", self.view, place)
        if size < 4 or size % 2:
            raise ProgramError(f"the vtable of {name} has size {size}", place)
        self.check(place, size, f"the vtable of {name}")
        return table_size, struct.unpack_from(f"<{(size - 4) // 2}H", self.view, place + 4)

    def table(self, cls: type[T], offset: int) -> T:
        """Read the table at `offset`."""
        slots = self.vtable(cls.__name__, offset)
        count = len(slots)
        values: dict[str, Any] = {}
        for item in cls.FIELDS:
            relative = slots[item.slot] if item.slot < count else 0
            if relative:
                values[item.name] = self.field(cls.__name__, item, slots, offset)
            elif item.kind.endswith("union") and item.slot <= count and slots[item.slot - 1]:
                self.absent_union(cls.__name__, item, offset + slots[item.slot - 1])
        value = cls(**values)
        if count > cls.SLOTS:
            unknown = (
                UnknownField(cls.__name__, slot, offset + slots[slot])
                for slot in range(cls.SLOTS, count)
                if slots[slot]
            )
            keep_unknown(value, tuple(unknown))
        return value

    def absent_union(self, owner: str, item: Field, place: int) -> None:
        """Raise when a union has a tag but no value."""
        self.check(place, 1, f"{owner}.{item.name}")
        if self.view[place]:
            raise ProgramError(f"{owner}.{item.name} names a type but has no value", place)

    def field(self, owner: str, item: Field, slots: tuple[int, ...], table: int) -> Any:
        """Read one field that is present."""
        offset = table + slots[item.slot]
        kind = item.kind
        if kind == "scalar":
            form = _SCALARS[item.type]
            if offset + form.size > len(self.view) or offset % form.size:
                self.check(offset, form.size, f"{owner}.{item.name}", form.size)
            number = form.unpack_from(self.view, offset)[0]
            return item.enum(number) if item.enum else number
        if kind in ("union", "aliased_union"):
            return self.union(owner, item, slots, table)
        place = self.follow(offset)
        if kind == "string":
            return self.string(place)
        if kind == "table":
            return self.table(item.type, place)
        return self.vector(f"{owner}.{item.name}", item, place)

    def union(self, owner: str, item: Field, slots: tuple[int, ...], table: int) -> Any:
        """Read a union's value, whatever its tag says it is."""
        tag = 0
        if slots[item.slot - 1]:
            place = table + slots[item.slot - 1]
            self.check(place, 1, f"{owner}.{item.name}")
            tag = self.view[place]
        if tag == 0:
            return None
        place = self.follow(table + slots[item.slot])
        if tag > len(item.type):
            return UnknownMember(tag, place)
        return self.table(item.type[tag - 1], place)

    def string(self, offset: int) -> str:
        """Read the string at `offset`."""
        size = self.u32(offset)
        self.check(offset + 4, size + 1, "a string")
        end = offset + 4 + size
        if self.view[end]:
            raise ProgramError("a string does not end with a zero", end)
        try:
            return str(self.view[offset + 4 : end], "utf-8")
        except UnicodeDecodeError as error:
            raise ProgramError("a string is not UTF-8", offset + 4 + error.start) from None

    def vector(self, name: str, item: Field, offset: int) -> Any:
        """Read the vector at `offset`."""
        count = self.u32(offset)
        kind = item.kind
        form = {"scalars": item.type, "opaque": "B"}.get(kind, "I")
        width = _SCALARS[form].size
        size = count * width
        self.check(offset + 4, size, f"the {count} elements of {name}", width if count else 1)
        self.spend(size + 4, offset)
        if kind == "opaque":
            return bytes(self.view[offset + 4 : offset + 4 + size])
        numbers = struct.unpack_from(f"<{count}{form}", self.view, offset + 4)
        if kind == "scalars":
            return list(numbers)
        places = [offset + 4 + 4 * i + number for i, number in enumerate(numbers)]
        if kind == "strings":
            return [self.string(place) for place in places]
        return [self.table(item.type, place) for place in places]
