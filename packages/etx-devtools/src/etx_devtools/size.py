# SPDX-License-Identifier: BSD-3-Clause
"""A program's size by operator, by weight and by module; the rows add up to the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from etx_schema import (
    Blob,
    DataLocation,
    DelegateCall,
    EtxError,
    ExecutionPlan,
    KernelCall,
    OptionalTensorList,
    Program,
    ProgramError,
    PteFile,
    Tensor,
    TensorList,
    program_of,
)
from etx_schema.files import load_bytes
from etx_schema.operator_names import operator_name
from etx_schema.problem import Origins
from etx_schema.pte_reader import assemble, read_program

from etx_devtools.pieces import Piece, cut

VIEWS = ("operator", "weight", "module")


@dataclass(frozen=True)
class Row:
    """What takes how many bytes, in how many pieces of the file."""

    name: str
    bytes: int
    pieces: int


class SizeReport:
    """Where the bytes of one file are."""

    def __init__(self, program: Program, pte: PteFile, pieces: list[Piece], size: int) -> None:
        self.file_size = size
        self.pieces = pieces
        self._program = program
        self._origins = Origins.of(pte.named_data)
        self._uses = _Uses(program, self._origins)

    def by(self, view: str) -> list[Row]:
        """Return the rows of a view, the largest first; they add up to `file_size`."""
        names: dict[str, Callable[[Piece], str]] = {
            "operator": self._operator,
            "weight": self._weight,
            "module": self._module,
        }
        if view not in names:
            raise EtxError(f"unknown view {view!r}; expected one of {', '.join(VIEWS)}")
        sums: dict[str, tuple[int, int]] = {}
        for piece in self.pieces:
            name = names[view](piece)
            size, count = sums.get(name, (0, 0))
            sums[name] = (size + piece.size, count + 1)
        rows = [Row(name, size, count) for name, (size, count) in sums.items()]
        total = sum(row.bytes for row in rows)
        assert total == self.file_size, f"rows add up to {total}, the file has {self.file_size}"
        return sorted(rows, key=lambda row: (-row.bytes, row.name))

    def _weight(self, piece: Piece) -> str:
        if piece.kind == "constant":
            return self._uses.constants.get(piece.index[0], f"const{piece.index[0] + 1} (unused)")
        if piece.kind == "state":
            return self._uses.states.get(piece.index[0], f"state{piece.index[0] + 1} (unused)")
        if piece.kind == "instruction":
            return "(instructions)"
        return self._other(piece)

    def _operator(self, piece: Piece) -> str:
        return self._by_user(piece, self._uses.operator_of)

    def _module(self, piece: Piece) -> str:
        return self._by_user(piece, self._module_of)

    def _by_user(self, piece: Piece, name: Callable[[int, int], str]) -> str:
        if piece.kind == "instruction":
            return name(*piece.index)
        users = self._users(piece)
        if users is None:
            return self._other(piece)
        names = sorted({name(*user) for user in users})
        if len(names) > 1:
            return "shared by " + ", ".join(names)
        return names[0] if names else "(used by no instruction)"

    def _module_of(self, method: int, instruction: int) -> str:
        name = self._program.execution_plan[method].name or ""
        return self._origins.get(name, instruction).get("module", "(unknown module)")

    def _users(self, piece: Piece) -> list[tuple[int, int]] | None:
        table = {
            "constant": self._uses.of_constant,
            "state": self._uses.of_state,
            "delegate": self._uses.of_delegate,
            "inline delegate": self._uses.of_inline,
        }.get(piece.kind)
        return None if table is None else table.get(piece.index[0], [])

    def _other(self, piece: Piece) -> str:
        if piece.kind in ("delegate", "inline delegate"):
            inline = piece.kind != "delegate"
            names = self._uses.backends.get((inline, piece.index[0]), ["(unused)"])
            return f"delegate {piece.index[0]}: {', '.join(names)}"
        if piece.kind == "named data":
            return f"named data {self._program.named_data[piece.index[0]].key}"
        return "(test cases)" if piece.kind == "bundle" else f"({piece.kind})"


class _Uses:
    """Which instructions use which constants, states and delegates."""

    def __init__(self, program: Program, origins: Origins) -> None:
        self.program = program
        self.origins = origins
        self.constants: dict[int, str] = {}
        self.states: dict[int, str] = {}
        self.of_constant: dict[int, list[tuple[int, int]]] = {}
        self.of_state: dict[int, list[tuple[int, int]]] = {}
        self.of_delegate: dict[int, list[tuple[int, int]]] = {}
        self.of_inline: dict[int, list[tuple[int, int]]] = {}
        self.backends: dict[tuple[bool, int], list[str]] = {}
        self.segments: dict[int, int] = {}
        for method, plan in enumerate(program.execution_plan):
            self._names(plan)
            places = [self._delegate(plan, i) for i in range(len(plan.delegates))]
            for i, instruction in enumerate(plan.chains[0].instructions if plan.chains else ()):
                self._note(plan, places, (method, i), instruction.instr_args)

    def operator_of(self, method: int, instruction: int) -> str:
        """Return the operator of an instruction, or what else it does."""
        plan = self.program.execution_plan[method]
        call = plan.chains[0].instructions[instruction].instr_args if plan.chains else None
        if isinstance(call, KernelCall):
            return operator_name(plan, call.op_index)
        if isinstance(call, DelegateCall) and 0 <= call.delegate_index < len(plan.delegates):
            return f"delegate {plan.delegates[call.delegate_index].id}"
        return "(control flow)"

    def _names(self, plan: ExecutionPlan) -> None:
        for entry in plan.values:
            tensor = entry.val
            if not isinstance(tensor, Tensor) or not tensor.data_buffer_idx:
                continue
            extra = tensor.extra_tensor_info
            index = tensor.data_buffer_idx - 1
            name = extra.fully_qualified_name if extra is not None else None
            table, word = self.states, "state"
            if tensor.allocation_info is None:
                table, word = self.constants, "const"
                name = name or self.origins.constant(plan.name or "", index + 1)
            if name or index not in table:
                table[index] = name or f"{word}{index + 1}"

    def _delegate(self, plan: ExecutionPlan, index: int) -> tuple[bool, int] | None:
        delegate = plan.delegates[index]
        if delegate.processed is None:
            return None
        inline = delegate.processed.location == DataLocation.INLINE
        place = delegate.processed.index
        if not inline:
            place = self.segments.setdefault(place, len(self.segments))
        names = self.backends.setdefault((inline, place), [])
        if delegate.id not in names:
            names.append(delegate.id or "")
        return inline, place

    def _note(
        self,
        plan: ExecutionPlan,
        places: list[tuple[bool, int] | None],
        user: tuple[int, int],
        call: object,
    ) -> None:
        if not isinstance(call, (KernelCall, DelegateCall)):
            return
        if isinstance(call, DelegateCall) and 0 <= call.delegate_index < len(places):
            place = places[call.delegate_index]
            if place is not None:
                table = self.of_inline if place[0] else self.of_delegate
                table.setdefault(place[1], []).append(user)
        for tensor in self._tensors(plan, call.args, 1):
            if tensor.data_buffer_idx:
                constant = tensor.allocation_info is None
                uses = self.of_constant if constant else self.of_state
                uses.setdefault(tensor.data_buffer_idx - 1, []).append(user)

    def _tensors(self, plan: ExecutionPlan, indices: list[int], depth: int) -> list[Tensor]:
        """Return the tensors among values, also those of lists."""
        found: list[Tensor] = []
        for index in indices:
            value = plan.values[index].val if 0 <= index < len(plan.values) else None
            if isinstance(value, Tensor):
                found.append(value)
            elif depth and isinstance(value, (TensorList, OptionalTensorList)):
                found += self._tensors(plan, value.items, depth - 1)
        return found


def sizes(source: str | os.PathLike[str] | Blob) -> SizeReport:
    """Account for every byte of a `.pte` or `.bpte`, given by its path or its bytes."""
    whole = load_bytes(source)
    try:
        view = program_of(whole)
        program, layout = read_program(view)
        pte = assemble(view, read_program(view)[0], layout)  # a copy would take three times as long
        pieces = cut(view, program, layout, pte)
    except ProgramError as error:
        if isinstance(source, (str, os.PathLike)):
            raise EtxError(f"{os.fspath(source)}: {error}") from error
        raise
    if len(whole) > len(view):
        pieces.append(Piece(layout.file_size, layout.file_size + len(whole) - len(view), "bundle"))
    return SizeReport(program, pte, pieces, layout.file_size + len(whole) - len(view))
