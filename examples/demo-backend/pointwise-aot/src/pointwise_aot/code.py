# SPDX-License-Identifier: BSD-3-Clause
"""The code that the delegate runs: instructions on registers that each hold a block of elements.

A blob is little-endian: `PW01`, seven uint16 (inputs, outputs, registers, constants, tensors, the
input whose shape the outputs have, instructions), the constants as float32, the tensors' names of
64 characters each, then four bytes an instruction: operation, destination, two sources.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from etx_exir.errors import BackendError

MAGIC = b"PW01"
HEADER = struct.Struct("<4s7H")
NAME_SIZE = 64
MOST = 255


class Op(IntEnum):
    """What an instruction does to its destination; STORE's is an output, of others a register."""

    LOAD = 0
    SPLAT = 1
    CONSTANT = 2
    TENSOR = 3
    STORE = 4
    NEG = 5
    ABS = 6
    RELU = 7
    SQRT = 8
    RECIPROCAL = 9
    EXP = 10
    TANH = 11
    SIGMOID = 12
    ADD = 13
    SUB = 14
    MUL = 15
    DIV = 16
    MINIMUM = 17
    MAXIMUM = 18


class Assembler:
    """Collects instructions on as many virtual registers as it takes, then assigns real ones.

    What a CONSTANT or a SPLAT sets keeps its register to the end: the delegate sets it once.
    """

    def __init__(self) -> None:
        self.constants: list[float] = []
        self.tensors: list[str] = []
        self._code: list[tuple[Op, int, tuple[int, ...]]] = []
        self._known: dict[tuple[Op, int], int] = {}
        self._kept: set[int] = set()
        self._count = 0

    def load(self, index: int, *, single: bool) -> int:
        """Return the register of input `index`, which is one number when `single`."""
        return self._once(Op.SPLAT if single else Op.LOAD, index)

    def constant(self, value: float) -> int:
        """Return the register that holds `value` everywhere."""
        (rounded,) = struct.unpack("<f", struct.pack("<f", value))
        if rounded not in self.constants:
            self.constants.append(rounded)
        return self._once(Op.CONSTANT, self.constants.index(rounded))

    def tensor(self, name: str) -> int:
        """Return the register of the named data `name`."""
        if name not in self.tensors:
            self.tensors.append(name)
        return self._once(Op.TENSOR, self.tensors.index(name))

    def emit(self, op: Op, *sources: int) -> int:
        """Append an operation on registers and return that of its result."""
        return self._append(op, sources)

    def store(self, index: int, register: int) -> None:
        """Write a register to output `index`."""
        self._code.append((Op.STORE, index, (register,)))

    def encode(self, inputs: int, outputs: int, shape_of: int) -> bytes:
        """Return the blob; the outputs have the shape of input `shape_of`."""
        rows, registers = self._allocated()
        counts = (inputs, outputs, registers, len(self.constants), len(self.tensors))
        if max(counts) > MOST or len(rows) > 0xFFFF:
            raise BackendError(
                f"a chain with {inputs} inputs, {outputs} outputs, {registers} registers, "
                f"{len(self.constants)} constants, {len(self.tensors)} tensors and {len(rows)} "
                f"instructions is too large: at most {MOST} of each and 65535 instructions"
            )
        names = b"".join(name.encode().ljust(NAME_SIZE, b"\0") for name in self.tensors)
        head = HEADER.pack(MAGIC, *counts, shape_of, len(rows))
        data = struct.pack(f"<{len(self.constants)}f", *self.constants)
        return head + data + names + b"".join(bytes(row) for row in rows)

    def _once(self, op: Op, index: int) -> int:
        if (op, index) not in self._known:
            self._known[op, index] = self._append(op, (index,))
        return self._known[op, index]

    def _append(self, op: Op, sources: tuple[int, ...]) -> int:
        self._code.append((op, self._count, sources))
        if op in (Op.SPLAT, Op.CONSTANT):
            self._kept.add(self._count)
        self._count += 1
        return self._count - 1

    def _allocated(self) -> tuple[list[tuple[int, int, int, int]], int]:
        last = {
            r: i for i, (op, _, sources) in enumerate(self._code) if op >= Op.STORE for r in sources
        }
        place: dict[int, int] = {}
        free: list[int] = []
        rows, used = [], 0
        for i, (op, target, sources) in enumerate(self._code):
            read = [place[r] for r in sources] if op >= Op.STORE else list(sources)
            if op is not Op.STORE:
                if not free or target in self._kept:
                    free.append(used)
                    used += 1
                place[target] = free.pop()
            first, second = [*read, 0, 0][:2]
            rows.append((int(op), target if op is Op.STORE else place[target], first, second))
            done = {r for r in sources if op >= Op.STORE and last[r] == i} - self._kept
            free += sorted(place[r] for r in done)
        return rows, used
