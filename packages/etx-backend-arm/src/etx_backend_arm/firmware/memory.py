# SPDX-License-Identifier: BSD-3-Clause
"""The memory that a method takes on a 32-bit target, from its file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from etx_schema._generated.program import (
    DelegateCall,
    ExecutionPlan,
    FreeCall,
    IntList,
    KernelCall,
    OptionalTensorList,
    Tensor,
    TensorList,
    TensorShapeDynamism,
)

from etx_backend_arm.firmware.npu import BACKEND
from etx_backend_arm.firmware.scratch import Place

BYTES = {
    "state": 184,
    "values": 16,
    "instructions": 12,
    "inputs": 20,
    "outputs": 20,
    "rebinds": 20,
    "kernels": 4,
    "delegates": 24,
    "tensors": 28,
    "items": 8,
    "lists": 8,
    "slots": 4,
    "specs": 12,
    "npu": 56,
    "dims": 4,
    "flags": 1,
}
"""Bytes of one element of each array in a method's arena, with pointers of 32 bits; a firmware's
test compares the sum with what the runtime says on the target."""


def planned_arenas(plan: ExecutionPlan) -> dict[int, int]:
    """Return bytes by memory id."""
    return {i: size for i, size in enumerate(plan.non_const_buffer_sizes) if i > 0}


def method_arena(plan: ExecutionPlan) -> int:
    """Return the bytes of the arena that a method of a 32-bit target is loaded into."""
    counts = dict.fromkeys(BYTES, 0)
    counts["state"] = 1
    counts["values"] = counts["flags"] = len(plan.values)
    counts["inputs"], counts["outputs"] = len(plan.inputs), len(plan.outputs)
    counts["kernels"], counts["delegates"] = len(plan.operators), len(plan.delegates)
    counts["npu"] = sum(delegate.id == BACKEND for delegate in plan.delegates)
    counts["specs"] = sum(len(delegate.compile_specs) for delegate in plan.delegates)
    for value in plan.values:
        _count_value(value.val, counts)
    code = plan.chains[0].instructions
    counts["instructions"] = len(code)
    calls = [i.instr_args for i in code if isinstance(i.instr_args, KernelCall | DelegateCall)]
    others = [2] if len(calls) < len(code) else []
    counts["slots"] += max([*others, *(len(call.args) for call in calls)], default=0)
    if any(isinstance(instruction.instr_args, FreeCall) for instruction in code):
        counts["rebinds"] = counts["tensors"]
    return sum((counts[part] * size + 7) // 8 * 8 for part, size in BYTES.items())


def _count_value(value: object, counts: dict[str, int]) -> None:
    if isinstance(value, Tensor):
        rank = len(value.sizes)
        is_dynamic = value.shape_dynamism != TensorShapeDynamism.STATIC
        counts["tensors"] += 1
        counts["dims"] += 2 * rank if is_dynamic else rank if rank != 1 else 0
        has_memory = value.allocation_info is not None or value.data_buffer_idx != 0
        counts["rebinds"] += 0 if has_memory else 1
    elif isinstance(value, IntList):
        counts["lists"] += 1
        counts["items"] += len(value.items)
        counts["slots"] += len(value.items)
    elif isinstance(value, TensorList | OptionalTensorList):
        counts["slots"] += len(value.items)


Rows = list[tuple[str, int, str]]
"""Name, bytes, note."""


@dataclass(frozen=True)
class MemoryNeeds:
    """What a method takes on a target, in bytes; `temporary` with the operator it is of.

    `places` are those of temporary memory in arena 1, by instruction; without, it lies apart.
    """

    arenas: dict[int, int]
    method: int
    temporary: int
    model: int
    hungriest: str = ""
    places: tuple[Place, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "arenas": {str(i): size for i, size in self.arenas.items()},
            "method_arena": self.method,
            "temporary": self.temporary,
            "temporary_of": self.hungriest,
            "temporary_is_planned": bool(self.places),
            "model": self.model,
        }

    def rows(self) -> Rows:
        """Return what it takes of RAM."""
        where = "; in arena 1, beside what is live" if self.places else ""
        return [
            *((f"planned arena {i}", size, "") for i, size in self.arenas.items() if size),
            ("method arena", self.method, ""),
            ("temporary memory", self.temporary, self.hungriest + where),
        ]


def rows_of(rows: Rows) -> str:
    """Return a table as text, a line each."""
    notes = [f"  ({note})" if note else "" for _, _, note in rows]
    pairs = zip(rows, notes, strict=True)
    return "".join(f"{name:18} {size:>10,} bytes{note}\n" for (name, size, _), note in pairs)
