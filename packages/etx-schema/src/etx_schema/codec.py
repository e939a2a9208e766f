# SPDX-License-Identifier: BSD-3-Clause
"""Write generated dataclasses as flatbuffers, byte for byte as the usual writers lay them out.

Two orders of the fields within a table are in use: `by_size` is that of flatc's JSON reader (wide
fields first, highest id first), the other one (lowest id first) that of generated builders.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, Union

from etx_schema.errors import EtxError, UnknownFieldError

Blob = Union[bytes, bytearray, memoryview]  # noqa: UP007


class OpenEnum(IntEnum):
    """An enum that also holds the numbers of newer files, under the name UNKNOWN_<number>."""

    @classmethod
    def _missing_(cls, value: object) -> OpenEnum | None:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = f"UNKNOWN_{value}"
        member._value_ = value
        return member


class Field(NamedTuple):
    """How one field is stored: `type` is a struct format, an enum, a table or a union's members."""

    slot: int
    name: str
    kind: str
    type: Any = None
    default: Any = None
    enum: Any = None
    align: int = 1
    omit_empty: bool = False


class UnknownField(NamedTuple):
    """A field of a newer schema: its table, its id, and the file offset of its content."""

    table: str
    slot: int
    offset: int


@dataclass
class UnknownMember:
    """A union member of a newer schema, which can be carried but not written."""

    tag: int
    offset: int


class Table:
    """Base of the generated dataclasses."""

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    SLOTS: ClassVar[int] = 0
    LAYOUTS: ClassVar[tuple[tuple[tuple[int, Field], ...], ...]] = ((), ())
    unknown_fields: ClassVar[tuple[UnknownField, ...]] = ()

    def __init_subclass__(cls) -> None:
        layout = [(item.slot, item) for item in cls.FIELDS]
        layout += [(item.slot - 1, item) for item in cls.FIELDS if item.kind == "union"]
        layout.sort(key=lambda entry: entry[0])
        by_size = sorted(layout, key=lambda entry: (_width(*entry), entry[0]), reverse=True)
        cls.LAYOUTS = (tuple(layout), tuple(by_size))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, item.name) == getattr(other, item.name) for item in self.FIELDS
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{item.name}={getattr(self, item.name)!r}" for item in self.FIELDS)
        return f"{type(self).__name__}({values})"


def _width(slot: int, item: Field) -> int:
    if item.kind == "scalar":
        return struct.calcsize("<" + item.type)
    return 4 if slot == item.slot else 1


class Encoder:
    """Serialize one root table; afterwards `alignment` is the largest one the bytes need."""

    def __init__(self, *, by_size: bool = True) -> None:
        self.alignment = 1
        self.by_size = by_size

    def encode(self, root: Table, identifier: str, *, size_prefixed: bool = False) -> bytes:
        """Return the finished flatbuffer."""
        from flatbuffers import Builder  # type: ignore[import-untyped]

        self.builder = Builder(1024)
        offset = self.table(root)
        finish = self.builder.FinishSizePrefixed if size_prefixed else self.builder.Finish
        finish(offset, identifier.encode())
        self.alignment = self.builder.minalign
        return bytes(self.builder.Output())

    def table(self, value: Table) -> int:
        """Write one table after its children and return its offset."""
        cls = type(value)
        if value.unknown_fields:
            refuse_unknown(value.unknown_fields[0])
        builder = self.builder
        children: dict[int, int] = {}
        for item in cls.FIELDS:
            if item.kind == "scalar":
                continue
            content = getattr(value, item.name)
            if content is None or (item.omit_empty and not content):
                continue
            try:
                self.child(item, content, value, children)
            except (TypeError, ValueError, IndexError, AttributeError, struct.error) as error:
                raise _misfit(cls, item, content) from error
        builder.StartObject(cls.SLOTS)
        for slot, item in cls.LAYOUTS[self.by_size]:
            if item.kind != "scalar":
                self.reference(slot, item, children)
                continue
            number = getattr(value, item.name)
            if number == item.default and not (number == 0 and str(number)[0] == "-"):
                continue
            try:
                self.scalar(item.type, number)
            except (TypeError, struct.error) as error:
                raise _misfit(cls, item, number) from error
            builder.Slot(slot)
        return int(builder.EndObject())

    def reference(self, slot: int, item: Field, children: dict[int, int]) -> None:
        """Add the offset (or the tag) of a child that is there."""
        if slot not in children:
            return
        if slot == item.slot:
            self.builder.PrependUOffsetTRelative(children[slot])
        else:
            self.builder.PrependUint8(children[slot])
        self.builder.Slot(slot)

    def scalar(self, form: str, number: Any) -> None:
        """Prepend one aligned number."""
        packed = struct.pack("<" + form, number)
        self.builder.Prep(len(packed), 0)
        self.raw(packed)

    def raw(self, content: Blob) -> None:
        """Prepend bytes for which there is room."""
        builder = self.builder
        builder.head -= len(content)
        builder.Bytes[builder.head : builder.head + len(content)] = content

    def child(self, item: Field, content: Any, owner: Table, children: dict[int, int]) -> None:
        """Write what a field refers to."""
        kind = item.kind
        if kind == "scalars":
            children[item.slot] = self.scalars(item.type, content)
        elif kind == "string":
            if not isinstance(content, str):
                raise TypeError
            children[item.slot] = self.builder.CreateString(content)
        elif kind == "union":
            children[item.slot - 1] = self.tag(item, content, owner)
            children[item.slot] = self.table(content)
        elif kind == "aliased_union":
            tag = getattr(owner, item.name + "_type")
            children[item.slot] = self.table(_checked(content, item.type[tag - 1]))
        elif kind == "table":
            children[item.slot] = self.table(_checked(content, item.type))
        elif kind == "tables":
            children[item.slot] = self.offsets(
                [self.table(_checked(each, item.type)) for each in content]
            )
        elif kind == "strings":
            children[item.slot] = self.offsets([self.builder.CreateString(s) for s in content])
        else:
            children[item.slot] = self.opaque(content, item.align)

    def tag(self, item: Field, content: Any, owner: Table) -> int:
        """Return the number of a union member."""
        if isinstance(content, UnknownMember):
            refuse_unknown(UnknownField(type(owner).__name__, item.slot, content.offset))
        return int(item.type.index(type(content))) + 1

    def scalars(self, form: str, content: Iterable[Any]) -> int:
        """Write a vector of numbers."""
        numbers = list(content)
        packed = struct.pack(f"<{len(numbers)}{form}", *numbers)
        width = struct.calcsize("<" + form)
        self.builder.StartVector(width, len(numbers), width)
        self.raw(packed)
        return int(self.builder.EndVector())

    def opaque(self, content: Blob, align: int) -> int:
        """Write a vector of bytes."""
        view = memoryview(content).cast("B")
        if len(view):
            self.builder.Prep(align, len(view))
        self.builder.StartVector(1, len(view), 1)
        self.raw(view)
        return int(self.builder.EndVector())

    def offsets(self, offsets: list[int]) -> int:
        """Write a vector of references."""
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())


def _checked(content: Any, expected: type[Table]) -> Table:
    if type(content) is not expected:
        raise TypeError
    return content


def _misfit(cls: type[Table], item: Field, content: Any) -> EtxError:
    text = repr(content)
    text = text if len(text) <= 60 else text[:57] + "..."
    return EtxError(f"{cls.__name__}.{item.name} cannot hold {text}: it is a {describe(item)}")


def describe(item: Field) -> str:
    """Say in words what a field holds."""
    if item.kind in ("table", "tables"):
        return item.type.__name__ if item.kind == "table" else f"list of {item.type.__name__}"
    if item.kind in ("union", "aliased_union"):
        return "one of " + ", ".join(member.__name__ for member in item.type)
    if item.kind in ("scalar", "scalars"):
        words = {"?": "bool", "f": "float32", "d": "float64"}
        form = item.type
        sign = "u" if form.isupper() else ""
        word = words.get(form, f"{sign}int{8 * struct.calcsize('<' + form)}")
        return word if item.kind == "scalar" else f"list of {word}"
    return {"strings": "list of strings", "opaque": "bytes"}.get(item.kind, item.kind)


def keep_unknown(table: Table, unknown: tuple[UnknownField, ...]) -> None:
    """Remember fields of a newer schema, so that writing `table` refuses."""
    if unknown:
        table.__dict__["unknown_fields"] = (*table.unknown_fields, *unknown)


def refuse_unknown(item: UnknownField) -> None:
    """Raise the error of a rewrite that would lose a field."""
    raise UnknownFieldError(
        f"{item.table} has field {item.slot}, which this etx-schema does not know; "
        "writing the file again would lose it: upgrade etx-schema",
        item.offset,
    )


def encode(
    root: Table, identifier: str, *, size_prefixed: bool = False, by_size: bool = True
) -> bytes:
    """Return the flatbuffer of `root`."""
    return Encoder(by_size=by_size).encode(root, identifier, size_prefixed=size_prefixed)
