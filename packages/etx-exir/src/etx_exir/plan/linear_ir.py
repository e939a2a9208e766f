# SPDX-License-Identifier: BSD-3-Clause
"""A method as a list of steps over storages: what the emitter writes and the planner places."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from etx_schema import EValue, Instruction, JumpFalseCall, KernelCall


class Kind(enum.Enum):
    """Who provides the bytes of a storage."""

    PLANNED = enum.auto()
    CONSTANT = enum.auto()
    CALLER = enum.auto()


@dataclass(eq=False)
class Storage:
    """One piece of memory; merged storages share the bytes of their root."""

    nbytes: int
    kind: Kind = Kind.PLANNED
    persistent: bool = False
    memory_id: int = 1
    pinned: bool = False
    offset: int = -1
    data_buffer_idx: int = 0
    name: str = ""
    parent: Storage | None = None
    parent_offset: int = 0

    def root(self) -> tuple[Storage, int]:
        """Return the storage that owns the bytes and the offset of this one in it."""
        storage, offset = self, 0
        while storage.parent is not None:
            offset += storage.parent_offset
            storage = storage.parent
        return storage, offset

    def merge_into(self, other: Storage, offset: int = 0) -> None:
        """Let this storage be `offset` bytes into `other`."""
        mine, shift = self.root()
        target, base = other.root()
        start = base + offset - shift
        if mine is target or start < 0:
            raise ValueError("storages cannot be merged")
        mine.parent, mine.parent_offset = target, start
        target.nbytes = max(target.nbytes, start + mine.nbytes)


@dataclass(eq=False)
class Place:
    """Where a tensor value lies."""

    storage: Storage
    offset: int
    nbytes: int

    def root(self) -> tuple[Storage, int]:
        """Return the owning storage and this tensor's offset in it."""
        storage, offset = self.storage.root()
        return storage, offset + self.offset


@dataclass(eq=False)
class Label:
    """A position in the steps that a jump goes to."""

    position: int = -1


@dataclass(eq=False)
class Step:
    """One instruction with what it reads and writes, by value index."""

    instruction: Instruction
    op: str
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    updates: tuple[int, ...] = ()
    source: Any = None
    sharable: tuple[tuple[int, int], ...] = ()
    copies: tuple[int, int] | None = None
    target: Label | None = None
    always: bool = False
    dead: bool = False

    def successors(self, index: int) -> tuple[int, ...]:
        """Return the positions that may follow."""
        if self.target is None or self.dead:
            return (index + 1,)
        if self.always:
            return (self.target.position,)
        return (index + 1, self.target.position)


@dataclass(eq=False)
class Listing:
    """The steps of a method; places, and the nodes they come from, are per tensor value."""

    name: str
    values: list[EValue] = field(default_factory=list)
    places: dict[int, Place] = field(default_factory=dict)
    nodes: dict[int, Any] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    state: list[int] = field(default_factory=list)
    operators: dict[tuple[str, str], int] = field(default_factory=dict)
    arena_sizes: dict[int, int] = field(default_factory=dict)

    def operator(self, name: str, overload: str) -> int:
        """Return the index of an operator."""
        return self.operators.setdefault((name, overload), len(self.operators))

    def storages(self) -> list[Storage]:
        """Return the planned storages, merged ones once, in order of their first value."""
        found: dict[int, Storage] = {}
        for place in self.places.values():
            storage = place.root()[0]
            if storage.kind is Kind.PLANNED:
                found.setdefault(id(storage), storage)
        return list(found.values())

    def finish(self) -> None:
        """Drop dead steps and unused operators, and give jumps their destinations."""
        moved, count = [], 0
        for step in self.steps:
            moved.append(count)
            count += not step.dead
        moved.append(count)
        names = list(self.operators)
        self.operators = {}
        self.steps = [step for step in self.steps if not step.dead]
        for step in self.steps:
            call = step.instruction.instr_args
            if isinstance(call, KernelCall):
                call.op_index = self.operator(*names[call.op_index])
            if step.target is not None:
                assert isinstance(call, JumpFalseCall)
                call.destination_instruction = moved[step.target.position]
