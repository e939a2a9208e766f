# SPDX-License-Identifier: BSD-3-Clause
"""How generated dataclasses lie in a flatbuffer: fields, tables, and what newer files add."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, Union

from etx_schema.errors import UnknownFieldError

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
