# SPDX-License-Identifier: BSD-3-Clause
"""Write generated dataclasses as flatbuffers, byte for byte as the usual writers lay them out.

Two orders of the fields within a table are in use: `by_size` is that of flatc's JSON reader (wide
fields first, highest id first), the other one (lowest id first) that of generated builders.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from etx_schema.codec import (
    Blob,
    Field,
    Table,
    UnknownField,
    UnknownMember,
    describe,
    refuse_unknown,
)
from etx_schema.errors import EtxError


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


def encode(
    root: Table, identifier: str, *, size_prefixed: bool = False, by_size: bool = True
) -> bytes:
    """Return the flatbuffer of `root`."""
    return Encoder(by_size=by_size).encode(root, identifier, size_prefixed=size_prefixed)
