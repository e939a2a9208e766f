# SPDX-License-Identifier: BSD-3-Clause
"""The structs, enums and typedefs of ``etx/abi.h`` as ctypes sees them, read from the header."""

from __future__ import annotations

import ctypes as c
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCALARS: dict[str, Any] = {
    "bool": c.c_bool,
    "double": c.c_double,
    "intptr_t": c.c_ssize_t,
    "size_t": c.c_size_t,
    **{f"{u}int{n}_t": getattr(c, f"c_{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64)},
}
STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)\n\} \1;", re.DOTALL)
FUNCTION = re.compile(r"(.+?)\(\*(\w+)\)\s*\((.*)\)", re.DOTALL)


def header() -> Path:
    """Return the header of the installed runtime."""
    spec = importlib.util.find_spec("etx_runtime")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "include" / "etx" / "abi.h"


def split(text: str, separator: str) -> Iterator[str]:
    """Yield the parts of `text` between separators that are in no brackets."""
    depth, part = 0, ""
    for letter in text:
        depth += (letter in "({") - (letter in ")}")
        if letter == separator and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += letter
    if part.strip():
        yield part.strip()


class Header:
    """What a header declares; only what ``abi.h`` needs of C."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
        wide = r"\1" if c.sizeof(c.c_void_p) > 4 else ""
        text = re.sub(r"#if UINTPTR_MAX > UINT32_MAX\n(.*?)#endif", wide, text, flags=re.DOTALL)
        self.types = dict(SCALARS)
        self.structs: dict[str, type[c.Structure]] = {}
        self.numbers = {n: int(v) for n, v in re.findall(r"\b(ETX_\w+) = (\d+)", text)}
        for name, of in re.findall(r"typedef (\w+) (\w+);", text):
            self.types[of] = SCALARS.get(name, c.c_int)
        for found in re.finditer(r"typedef ([^;{}]*?\(\*\w+\)[^;{}]*);", text):
            name, kind = self.member(found.group(1))
            self.types[name] = kind
        for name, body in STRUCT.findall(text):
            struct = type(name, (c.Structure,), {"_fields_": list(self.members(body))})
            self.types[name] = self.structs[name] = struct

    def members(self, body: str) -> Iterator[tuple[str, Any]]:
        for text in split(body, ";"):
            union = re.match(r"union \{(.*)\} (\w+)", text, re.DOTALL)
            if union is None:
                yield self.member(text)
                continue
            fields = list(self.members(union.group(1)))
            yield union.group(2), type(union.group(2), (c.Union,), {"_fields_": fields})

    def member(self, text: str) -> tuple[str, Any]:
        """Return the name of a declaration and its type."""
        if function := FUNCTION.fullmatch(text):
            result, name, arguments = function.groups()
            kinds = [self.member(a)[1] for a in split(arguments, ",") if a != "void"]
            return name, c.CFUNCTYPE(self.kind(result), *kinds)
        kind, name = re.fullmatch(r"(.*?)(\w+)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        return name, self.kind(kind)

    def kind(self, text: str) -> Any:
        base = re.sub(r"\b(?:const|struct)\b|\s", "", text)
        if base in ("void", ""):
            return None
        if base == "char*":
            return c.c_char_p
        if not base.endswith("*"):
            return self.types[base]
        target = SCALARS.get(base[:-1])
        return c.POINTER(target) if target is not None else c.c_void_p


ABI = Header(header().read_text())
