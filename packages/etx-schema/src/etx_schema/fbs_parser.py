# SPDX-License-Identifier: BSD-3-Clause
"""Read the part of the FlatBuffers schema language that our schemas use."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

SCALARS = {
    "bool": "?",
    "byte": "b",
    "ubyte": "B",
    "short": "h",
    "ushort": "H",
    "int": "i",
    "uint": "I",
    "long": "q",
    "ulong": "Q",
    "float": "f",
    "double": "d",
}

_TOKEN = re.compile(r'///[^\n]*|//[^\n]*|"[^"]*"|[A-Za-z_][\w.]*|-?[\d.]+|[{}()\[\]:;,=]')


@dataclass
class EnumDef:
    """An enum and its stored type."""

    name: str
    base: str
    values: dict[str, int]
    doc: str = ""


@dataclass
class UnionDef:
    """A union: (member name, table) in the order of their tags, which start at 1."""

    name: str
    members: list[tuple[str, str]]
    doc: str = ""

    @property
    def aliased(self) -> bool:
        """Tell whether the table does not determine the member."""
        return len({table for _, table in self.members}) < len(self.members)


@dataclass
class FieldDef:
    """A field; `slot` is its flatbuffers id (of a union: the id of the value, after the tag)."""

    name: str
    type: str
    vector: bool
    slot: int
    default: str | None = None
    attributes: dict[str, int | None] = field(default_factory=dict)


@dataclass
class TableDef:
    """A table and its fields in the order of their ids."""

    name: str
    fields: list[FieldDef]
    slots: int = 0
    doc: str = ""


@dataclass
class Schema:
    """One parsed schema file."""

    enums: dict[str, EnumDef] = field(default_factory=dict)
    unions: dict[str, UnionDef] = field(default_factory=dict)
    tables: dict[str, TableDef] = field(default_factory=dict)
    namespace: str = ""
    root: str = ""
    identifier: str = ""


def parse(text: str) -> Schema:
    """Parse a schema; raise ValueError with the line of anything it does not know."""
    return _Parser(text).run()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [
            (match.group(), match.start())
            for match in _TOKEN.finditer(text)
            if not match.group().startswith("//") or match.group().startswith("///")
        ]
        self.at = 0
        self.schema = Schema()

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if expected is not None and token != expected:
            start = self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text)
            line = self.text.count("\n", 0, start) + 1
            raise ValueError(f"line {line}: expected {expected!r}, found {token!r}")
        self.at += 1
        return token

    def accept(self, token: str) -> bool:
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def run(self) -> Schema:
        statements: dict[str, Callable[[], object]] = {
            "namespace": lambda: setattr(self.schema, "namespace", self.take()),
            "attribute": self.take,
            "root_type": lambda: setattr(self.schema, "root", self.take()),
            "file_identifier": lambda: setattr(self.schema, "identifier", self.take().strip('"')),
            "file_extension": self.take,
        }
        blocks = {"enum": self.enum, "union": self.union, "table": self.table}
        doc: list[str] = []
        while self.at < len(self.tokens):
            token = self.take()
            if token.startswith("///"):
                doc.append(token[3:].strip())
            elif token in blocks:
                blocks[token](" ".join(doc))
                doc = []
            elif token in statements:
                statements[token]()
                self.take(";")
            else:
                self.at -= 1
                self.take("a declaration")
        self.number()
        return self.schema

    def enum(self, doc: str) -> None:
        name = self.take()
        self.take(":")
        base = self.take()
        self.take("{")
        values: dict[str, int] = {}
        while not self.accept("}"):
            key = self.take()
            values[key] = (
                int(self.take()) if self.accept("=") else max(values.values(), default=-1) + 1
            )
            self.accept(",")
        self.schema.enums[name] = EnumDef(name, base, values, doc)

    def union(self, doc: str) -> None:
        name = self.take()
        self.take("{")
        members: list[tuple[str, str]] = []
        while not self.accept("}"):
            key = self.take()
            members.append((key, self.take() if self.accept(":") else key))
            self.accept(",")
        self.schema.unions[name] = UnionDef(name, members, doc)

    def table(self, doc: str) -> None:
        name = self.take()
        self.take("{")
        fields: list[FieldDef] = []
        while not self.accept("}"):
            if self.peek().startswith("///"):
                self.take()
                continue
            fields.append(self.field())
        self.schema.tables[name] = TableDef(name, fields, doc=doc)

    def field(self) -> FieldDef:
        name = self.take()
        self.take(":")
        vector = self.accept("[")
        kind = self.take()
        if vector:
            self.take("]")
        default = self.take() if self.accept("=") else None
        attributes: dict[str, int | None] = {}
        if self.accept("("):
            while not self.accept(")"):
                attribute = self.take()
                attributes[attribute] = int(self.take()) if self.accept(":") else None
                self.accept(",")
        self.take(";")
        return FieldDef(name, kind, vector, -1, default, attributes)

    def number(self) -> None:
        for table in self.schema.tables.values():
            slot = 0
            for item in table.fields:
                if item.type in self.schema.unions:
                    slot += 1
                item.slot = slot
                slot += 1
            table.slots = slot
