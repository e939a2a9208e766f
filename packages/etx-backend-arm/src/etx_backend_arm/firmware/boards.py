# SPDX-License-Identifier: BSD-3-Clause
"""Boards: a machine of QEMU, or one described by a file."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from etx_schema.errors import EtxError
from etx_schema.sizes import parse_size

FORM = (
    'an object with "banks", rows of name, origin, size and, for an arena\'s own memory, mem_id; '
    'and "machine", QEMU\'s name, where it has one'
)
NAME = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True)
class Memory:
    """A memory of a board: its address and its size in bytes."""

    origin: int
    size: int


@dataclass(frozen=True)
class Board:
    """Code and model lie in `flash`, all that is written in `ram`, but arenas that have a bank.

    `banks` are names and memories by memory id. `npu` is what is inside of an NPU, which QEMU does
    not have: memory of its simulator. Of a board without `is_emulated` QEMU knows nothing.
    """

    name: str
    flash: Memory
    ram: Memory
    npu: Memory | None = None
    banks: tuple[tuple[int, str, Memory], ...] = ()
    is_emulated: bool = True

    def bank(self, mem_id: int) -> tuple[str, Memory]:
        """Return the memory of an arena, with its name."""
        found = ((name, memory) for each, name, memory in self.banks if each == mem_id)
        return next(found, ("ram", self.ram))


def read_board(path: Path) -> Board:
    """Return the board that a JSON file describes, `etx compile --memory-map` reads the same one.

    Errors: EtxError with what is missing.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        rows = {row["name"]: row for row in document["banks"]}
        sized = {name: row for name, row in rows.items() if "origin" in row}
        memories = {
            name: Memory(parse_size(row["origin"]), parse_size(row["size"]))
            for name, row in sized.items()
        }
        machine = document.get("machine")
        banks = tuple(
            (int(row["mem_id"]), name, memories[name])
            for name, row in sized.items()
            if "mem_id" in row and name != "ram"
        )
    except OSError as error:
        raise EtxError(f"cannot read the board {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else error
        raise EtxError(f"the board {path}: {what}; expected {FORM}") from error
    if missing := {"flash", "ram"} - memories.keys():
        raise EtxError(
            f"the board {path} has no bank {' and '.join(sorted(missing))} with origin and size"
        )
    if wrong := [name for name in memories if not NAME.fullmatch(name)]:
        raise EtxError(f"the board {path}: bank {wrong[0]!r}; expected a name of letters")
    flash, ram = memories["flash"], memories["ram"]
    return Board(machine or path.stem, flash, ram, None, banks, machine is not None)
