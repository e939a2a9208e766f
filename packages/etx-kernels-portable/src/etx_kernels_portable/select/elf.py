# SPDX-License-Identifier: BSD-3-Clause
"""Sections of a relocatable ELF file and what they refer to."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from etx_schema.errors import EtxError

SYMTAB, RELA, NOBITS, REL = 2, 4, 8, 9
ALLOCATED = 2
HALF = 0xFFFF


@dataclass(frozen=True)
class Reference:
    """A relocation: where in its section, and the section and the offset it leads to."""

    at: int
    section: int
    offset: int


@dataclass
class Section:
    """A part of memory: its name, its bytes, and the names of symbols that begin in it."""

    name: str
    data: bytes
    symbols: list[str] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)


@dataclass(frozen=True)
class Layout:
    """The records of a class of ELF files, for struct."""

    is_wide: bool
    order: str

    def read(self, kind: str, data: bytes, at: int = 0) -> tuple[int, ...]:
        """Return a record's fields."""
        return struct.unpack_from(self.order + kind, data, at)

    def symbols(self, data: bytes) -> list[tuple[int, int, int]]:
        """Return name, section and value of each."""
        if self.is_wide:
            rows = struct.iter_unpack(self.order + "IBBHQQ", data)
            return [(name, section, value) for name, _, _, section, value, _ in rows]
        rows = struct.iter_unpack(self.order + "IIIBBH", data)
        return [(name, section, value) for name, value, _, _, _, section in rows]

    def relocations(self, data: bytes, *, has_addend: bool) -> list[tuple[int, int, int | None]]:
        """Return place, symbol and addend of each; None: it stands at the place."""
        word, shift = ("Q", 32) if self.is_wide else ("I", 8)
        kind = word * 2 + (word.lower() if has_addend else "")
        rows = struct.iter_unpack(self.order + kind, data)
        return [(row[0], row[1] >> shift, row[2] if has_addend else None) for row in rows]


def read_sections(data: bytes) -> dict[int, Section]:
    """Return the allocated sections by number. Errors: EtxError for another kind of file."""
    if data[:4] != b"\x7fELF":
        raise EtxError("sizes by operator need a linker of ELF files")
    layout = Layout(data[4] == 2, "<" if data[5] == 1 else ">")
    header = layout.read("QQQ" if layout.is_wide else "III", data, 24)
    (size, count, names_at) = layout.read("HHH", data, 58 if layout.is_wide else 46)
    kind = "IIQQQQIIQQ" if layout.is_wide else "IIIIIIIIII"
    headers = [layout.read(kind, data, header[2] + size * i) for i in range(max(count, 1))]
    if count == 0:
        total = headers[0][5]
        headers = [layout.read(kind, data, header[2] + size * i) for i in range(total)]
    names_at = headers[0][6] if names_at == HALF else names_at
    contents = [b"" if h[1] == NOBITS else data[h[4] : h[4] + h[5]] for h in headers]
    sections = {
        i: Section(text_at(contents[names_at], h[0]), contents[i])
        for i, h in enumerate(headers)
        if h[2] & ALLOCATED
    }
    tables = [i for i, h in enumerate(headers) if h[1] == SYMTAB]
    symbols = _symbols(headers, contents, tables, layout)
    for name, section, _ in symbols:
        if section in sections and name:
            sections[section].symbols.append(name)
    for i, h in enumerate(headers):
        if h[1] in (RELA, REL) and h[7] in sections:
            rows = layout.relocations(contents[i], has_addend=h[1] == RELA)
            _refer(sections, sections[h[7]], rows, symbols)
    return sections


def text_at(data: bytes, at: int) -> str:
    """Return the text that begins there."""
    return data[at : data.index(b"\0", at)].decode("utf-8", "replace")


def _symbols(
    headers: list[tuple[int, ...]], contents: list[bytes], tables: list[int], layout: Layout
) -> list[tuple[str, int, int]]:
    if not tables:
        return []
    table = tables[0]
    extended = next((c for h, c in zip(headers, contents, strict=True) if h[1] == 18), b"")
    found = []
    for i, (name, section, value) in enumerate(layout.symbols(contents[table])):
        number = layout.read("I", extended, 4 * i)[0] if section == HALF and extended else section
        found.append((text_at(contents[headers[table][6]], name), number, value))
    return found


def _refer(
    sections: dict[int, Section],
    section: Section,
    rows: list[tuple[int, int, int | None]],
    symbols: list[tuple[str, int, int]],
) -> None:
    for at, symbol, addend in rows:
        _, target, value = symbols[symbol]
        if addend is None:
            is_word = at + 4 <= len(section.data)
            addend = int.from_bytes(section.data[at : at + 4], "little") if is_word else 0
        if target in sections:
            section.references.append(Reference(at, target, value + addend))
