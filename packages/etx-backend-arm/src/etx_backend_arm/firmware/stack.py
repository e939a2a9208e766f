# SPDX-License-Identifier: BSD-3-Clause
"""An upper bound of the stack that a linked image takes: frames along its calls.

Frames are read from the machine code, which has those of the C library too; the compiler's own
numbers (`-fstack-usage`) are compared with them in a test. An indirect call goes to any function
whose address the image holds; kernels, and what reads a file, call no kernels. Interrupts are
not part of it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from etx_schema import fbs_dir
from etx_schema.errors import EtxError

from etx_backend_arm.firmware.build import run_tool

FUNCTION = re.compile(r"^([0-9a-f]{8}) <(.+)>:$")
LINE = re.compile(r"^ *([0-9a-f]+):\t[0-9a-f ]+\t(\S+)(?:\t([^@]*))?")
TARGET = re.compile(r"\b([0-9a-f]+) <([^>+]+)(\+0x[0-9a-f]+)?>")
LITERAL = re.compile(r"@ \(([0-9a-f]+) ")
RANGE = re.compile(r"([rds])(\d+)-[rds](\d+)")
KERNEL = "_ZN3etx5Boxed"
ENTRY = "reset"
HANDLERS = ("reset", "fault")
READERS = re.compile("TableVerifier|7Program|FreeableBuffer|6reportE|MethodLoader")
"""Functions of the core that run before any kernel."""
TABLES = ("TableVerifier", "TypeTable")
"""The verifier of tables, as deep as its schema, and all that it calls by address."""
SORT = "__introsort_loop"
MOST = 2**31 - 1
"""What an address space of 32 bits holds."""
MEMBER = re.compile(r"\w+ *: *\[? *(\w+)")
POINTER = "*"
"""In the calls of a function: one by an address."""


@dataclass
class Function:
    """A function of an image: bytes of its frame, what it calls, whether its address is held."""

    name: str
    frame: int = 0
    calls: set[str] = field(default_factory=set)
    is_held: bool = False


@dataclass(frozen=True)
class Stack:
    """The most that an image takes, and the functions on the way, each with its frame."""

    size: int
    path: tuple[tuple[str, int], ...]


def stack_of(image: Path, most: int = MOST) -> Stack:
    """Return the bound of a linked image that sorts at most `most` items.

    Errors: EtxError where there is none, with its reason.
    """
    return bound(read_functions(image), most)


def bound(functions: Mapping[str, Function], most: int = MOST) -> Stack:
    """Return the largest sum of frames from ENTRY on.

    Errors: EtxError with the functions that call themselves.
    """
    direct = {name: {c for c in f.calls if c in functions} for name, f in functions.items()}
    turns = {}
    for part in _components(direct):
        if _is_cycle(part, direct):
            turns.update(dict.fromkeys(part, _turns(part, most)))
    held = {f.name for f in functions.values() if f.is_held and f.name not in HANDLERS}
    tables = {name for name in held if TABLES[1] in name}
    kernels = {name for name in held if name.startswith(KERNEL)}
    below = _reachable(held, direct)
    calls = dict(direct)
    for name in (name for name, f in functions.items() if POINTER in f.calls):
        if TABLES[0] in name:
            calls[name] = direct[name] | tables
        else:
            is_reader = name in below or READERS.search(name)
            calls[name] = direct[name] | (held - tables - (kernels if is_reader else set()))
    best: dict[str, tuple[int, tuple[tuple[str, int], ...]]] = {}
    for part in _components(calls):
        inside = [(functions[n].frame, n) for n in sorted(part)]
        nexts = [best[c] for n in part for c in calls[n] if c not in part]
        size, path = max(nexts, default=(0, ()))
        own = tuple((name, frame * turns.get(name, 1)) for frame, name in inside)
        for name in part:
            best[name] = (size + sum(frame for _, frame in own), own + path)
    return Stack(*best[ENTRY])


def _turns(part: set[str], most: int) -> int:
    """Return how deep functions that call themselves go.

    The standard library's sort divides `most` items as often as twice their binary logarithm, and
    then makes a heap of the rest.
    """
    if all(SORT in name for name in part):
        return 2 * max(most, 1).bit_length() + 1
    if all(TABLES[0] in name for name in part):
        return max(_depth(name, tables) for tables in [_tables()] for name in tables)
    raise EtxError(f"the stack has no bound: {', '.join(sorted(part))} call themselves")


def _tables() -> dict[str, set[str]]:
    """Return the tables and unions of the file format, and what each one holds."""
    text = (Path(fbs_dir()) / "program.fbs").read_text(encoding="utf-8")
    bodies = re.findall(r"^(?:table|union) (\w+)\s*\{([^}]*)\}", text, re.M)
    return {
        name: set(MEMBER.findall(body) if ":" in body else re.findall(r"\w+", body))
        for name, body in bodies
    }


def _depth(name: str, tables: Mapping[str, set[str]]) -> int:
    return 1 + max((_depth(part, tables) for part in tables[name] if part in tables), default=0)


def read_functions(image: Path) -> dict[str, Function]:
    """Return the functions of an image by name, those of equal address under one."""
    text = run_tool(["arm-none-eabi-objdump", "-d", "--section=.text", str(image)])
    words = _words(image)
    functions: dict[str, Function] = {}
    places: dict[int, str] = {}
    body: list[tuple[str, str, str]] = []
    function = Function("")
    for line in text.splitlines():
        if start := FUNCTION.match(line):
            _read_body(function, body, words)
            function, body = Function(f"{start[2]}"), []
            if start[2] in functions:
                function.name = f"{start[2]}@{start[1]}"
            functions[function.name] = function
            places[int(start[1], 16)] = function.name
        elif found := LINE.match(line):
            body.append((found[2], (found[3] or "").strip(), line))
    _read_body(function, body, words)
    for f in functions.values():
        f.calls = {places.get(int(c), c) if c.isdigit() else c for c in f.calls}
    for word in words.values():
        if word & 1 and (name := places.get(word - 1)):
            functions[name].is_held = True
    return functions


def _read_body(function: Function, body: list[tuple[str, str, str]], words: dict[int, int]) -> None:
    literals: dict[str, int] = {}
    popped = ""
    for operation, operands, line in body:
        name = operation.split(".")[0]
        if name == "ldr" and (literal := LITERAL.search(line)):
            literals[operands.split(",")[0]] = words.get(int(literal[1], 16), 0)
        function.frame += _frame(function.name, name, operands, literals)
        if name in ("bx", "blx") and operands not in ("lr", popped):
            function.calls.add(POINTER)
        target = TARGET.search(operands) if name.startswith(("b", "cb")) else None
        is_own = target and target[2] == function.name.split("@")[0]
        if target and (not is_own or (name == "bl" and not target[3])):
            function.calls.add(target[2] if target[3] else str(int(target[1], 16)))
        popped = operands.strip("{}") if name == "pop" else ""


def _frame(function: str, name: str, operands: str, literals: Mapping[str, int]) -> int:
    """Return by how much an instruction moves the stack down."""
    if name in ("push", "vpush") or (name in ("stmdb", "vstmdb") and operands.startswith("sp!")):
        return _registers(operands[operands.index("{") :])
    if name.startswith(("str", "vstr")) and (found := re.search(r"\[sp, #-(\d+)\]!", operands)):
        return int(found[1])
    parts = [part.strip() for part in operands.split(",")]
    if name in ("sub", "subw") and parts[0] == "sp":
        if not parts[-1].startswith("#"):
            raise EtxError(f"the stack has no bound: {function} takes as much as it computes")
        return int(parts[-1][1:])
    if name == "add" and parts[0] == "sp" and parts[-1] in literals:
        return max(0, (1 << 32) - literals[parts[-1]]) if literals[parts[-1]] >> 31 else 0
    return 0


def _registers(text: str) -> int:
    """Return the bytes of a list of registers."""
    size = 0
    for part in text.strip("{} ").split(","):
        each = 8 if part.strip().startswith("d") else 4
        found = RANGE.search(part)
        size += each * (int(found[3]) - int(found[2]) + 1 if found else 1)
    return size


def _words(image: Path) -> dict[int, int]:
    """Return the words of code and data by address, without the model."""
    content = image.read_bytes()
    (headers,) = struct.unpack_from("<I", content, 32)
    size, count, names = struct.unpack_from("<HHH", content, 46)
    rows = [struct.unpack_from("<10I", content, headers + i * size) for i in range(count)]
    words: dict[int, int] = {}
    for name, kind, _, address, offset, length, *_ in rows:
        start = rows[names][4] + name
        section = content[start : content.index(b"\0", start)].decode()
        if kind == 1 and section in (".text", ".data"):
            numbers = struct.unpack_from(f"<{length // 4}I", content, offset)
            words.update({address + 4 * i: number for i, number in enumerate(numbers)})
    return words


def _reachable(names: Iterable[str], calls: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += calls[name]
    return found


def _is_cycle(part: set[str], calls: Mapping[str, set[str]]) -> bool:
    return len(part) > 1 or any(name in calls[name] for name in part)


def _components(calls: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected parts, each after those it calls (Kosaraju's algorithm)."""
    order: list[str] = []
    seen: set[str] = set()
    for first in calls:
        stack = [(first, False)]
        while stack:
            name, is_done = stack.pop()
            if is_done:
                order.append(name)
            elif name not in seen:
                seen.add(name)
                stack += [(name, True), *((c, False) for c in sorted(calls[name]))]
    callers: dict[str, set[str]] = {name: set() for name in calls}
    for name, called in calls.items():
        for each in called:
            callers[each].add(name)
    parts: list[set[str]] = []
    taken: set[str] = set()
    for name in reversed(order):
        if name not in taken:
            part = _without(name, callers, taken)
            taken |= part
            parts.append(part)
    return parts[::-1]


def _without(first: str, calls: Mapping[str, set[str]], taken: set[str]) -> set[str]:
    found: set[str] = set()
    left = [first]
    while left:
        name = left.pop()
        if name not in found and name not in taken:
            found.add(name)
            left += calls[name]
    return found
