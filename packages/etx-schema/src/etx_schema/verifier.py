# SPDX-License-Identifier: BSD-3-Clause
"""Check that a program makes sense: every index, type, size and jump that a runtime relies on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from etx_schema._generated.program import (
    BackendDelegate,
    Bool,
    DataLocation,
    DelegateCall,
    ExecutionPlan,
    FreeCall,
    Instruction,
    Int,
    IntList,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    Null,
    OptionalTensorList,
    Tensor,
    TensorDataLocation,
    TensorList,
    TensorShapeDynamism,
)
from etx_schema.codec import UnknownMember
from etx_schema.dtypes import DTYPES, MAX_RANK, tensor_nbytes
from etx_schema.problem import Origins, Problem
from etx_schema.pte import PteFile

MAX_BYTES = 2**63 - 1


def verify(pte: PteFile) -> list[Problem]:
    """Return everything that is wrong with a program; nothing, for a valid one."""
    problems = []
    if pte.program.version > 0:
        problems.append(
            Problem(
                f"the program has version {pte.program.version}, the newest known is 0",
                hint="upgrade etx-schema",
            )
        )
    if not pte.program.execution_plan:
        problems.append(Problem("the program has no methods"))
    origins = Origins.of(pte.named_data)
    seen: set[str | None] = set()
    for plan in pte.program.execution_plan:
        if plan.name in seen:
            problems.append(Problem("two methods have this name", plan.name or ""))
        seen.add(plan.name)
        problems += _Method(pte, plan, origins).check()
    return problems


class _Method:
    def __init__(self, pte: PteFile, plan: ExecutionPlan, origins: Origins) -> None:
        self.pte = pte
        self.plan = plan
        self.origins = origins
        self.name = plan.name or ""

    def check(self) -> list[Problem]:
        problems = [Problem(text, self.name) for text in self.structure()]
        for i, value in enumerate(self.plan.values):
            problems += [Problem(f"value {i}: {t}", self.name) for t in self.value(i, value.val)]
        for chain in self.plan.chains:
            for i, instruction in enumerate(chain.instructions):
                origin = self.origins.get(self.name, i)
                for text in self.instruction(instruction, len(chain.instructions)):
                    module, source = origin.get("module", ""), origin.get("source", "")
                    problems.append(Problem(text, self.name, i, module, source))
        return problems

    def structure(self) -> Iterator[str]:
        plan = self.plan
        if not plan.name:
            yield "a method has no name"
        if len(plan.chains) != 1:
            yield f"it has {len(plan.chains)} chains, expected 1"
        for what, indices in (("input", plan.inputs), ("output", plan.outputs)):
            for i, index in enumerate(indices):
                yield from self.index(f"{what} {i}", index)
        for i, operator in enumerate(plan.operators):
            if not operator.name:
                yield f"operator {i} has no name"
        for i, delegate in enumerate(plan.delegates):
            yield from self.delegate(i, delegate)
        for i, size in enumerate(plan.non_const_buffer_sizes):
            if size < 0 or (i == 0 and size != 0):
                yield f"non_const_buffer_sizes[{i}] is {size}"

    def delegate(self, i: int, delegate: BackendDelegate) -> Iterator[str]:
        if not delegate.id:
            yield f"delegate {i} has no id"
        if delegate.processed is None:
            yield f"delegate {i} ({delegate.id}) has no blob"
            return
        inline = delegate.processed.location == DataLocation.INLINE
        blobs = self.pte.program.backend_delegate_data if inline else self.pte.delegates
        if delegate.processed.location not in (DataLocation.INLINE, DataLocation.SEGMENT):
            yield f"delegate {i} ({delegate.id}) has data location {delegate.processed.location}"
        elif delegate.processed.index >= len(blobs):
            index, count = delegate.processed.index, len(blobs)
            yield f"delegate {i} ({delegate.id}) refers to blob {index} of {count}"

    def index(self, what: str, index: int) -> Iterator[str]:
        if not 0 <= index < len(self.plan.values):
            yield f"{what} is value {index}, there are {len(self.plan.values)} values"

    def kind(self, index: int) -> Any:
        if 0 <= index < len(self.plan.values):
            return type(self.plan.values[index].val)
        return None

    def value(self, i: int, value: object) -> Iterator[str]:
        if value is None:
            yield "it has no type"
        elif isinstance(value, UnknownMember):
            yield f"it has type number {value.tag}, which this etx-schema does not know"
        elif isinstance(value, Tensor):
            yield from self.tensor(value)
        elif isinstance(value, IntList):
            yield from self.items(value.items, (Int,))
        elif isinstance(value, TensorList):
            yield from self.items(value.items, (Tensor,), before=i)
        elif isinstance(value, OptionalTensorList):
            yield from self.items([j for j in value.items if j >= 0], (Tensor, Null))

    def items(
        self, items: list[int], types: tuple[type, ...], before: int | None = None
    ) -> Iterator[str]:
        kinds = " or ".join(each.__name__ for each in types)
        for place, index in enumerate(items):
            kind = self.kind(index)
            if kind is None:
                yield from self.index(f"item {place}", index)
            elif kind not in types:
                yield f"item {place} is value {index}, a {kind.__name__}, expected {kinds}"
            elif before is not None and index >= before:
                yield f"item {place} is value {index}, which comes later"

    def tensor(self, tensor: Tensor) -> Iterator[str]:
        shape = list(_shape(tensor))
        yield from shape
        if tensor.storage_offset:
            yield f"storage offset {tensor.storage_offset}, expected 0"
        if tensor.layout:
            yield f"layout {tensor.layout}, expected 0 (strided)"
        if tensor.shape_dynamism not in (
            TensorShapeDynamism.STATIC,
            TensorShapeDynamism.DYNAMIC_BOUND,
        ):
            yield f"shape dynamism {tensor.shape_dynamism.name}, which no runtime accepts"
        extra = tensor.extra_tensor_info
        external = extra is not None and extra.location == TensorDataLocation.EXTERNAL
        if extra is not None and external and not extra.fully_qualified_name:
            yield "it is external but has no name"
        if extra is not None and extra.mutable_data_segments_idx:
            yield f"it refers to mutable-data segment {extra.mutable_data_segments_idx} of 1"
        if not shape:
            yield from self.bytes(tensor, external=external)

    def bytes(self, tensor: Tensor, *, external: bool) -> Iterator[str]:
        size = tensor_nbytes(tensor)
        planned = tensor.allocation_info
        if tensor.data_buffer_idx and not external:
            blobs = self.pte.constants if planned is None else self.pte.mutable_data
            what = "constants" if planned is None else "initial values"
            if tensor.data_buffer_idx > len(blobs):
                yield f"its data is entry {tensor.data_buffer_idx} of {len(blobs)} {what}"
            elif len(blobs[tensor.data_buffer_idx - 1]) < size:
                have = len(blobs[tensor.data_buffer_idx - 1])
                yield f"it needs {size} bytes, entry {tensor.data_buffer_idx} has {have}"
        if planned is None:
            return
        sizes = self.plan.non_const_buffer_sizes
        if not 1 <= planned.memory_id < len(sizes):
            yield f"memory id {planned.memory_id}, there are {max(0, len(sizes) - 1)} arenas"
            return
        offset = planned.memory_offset_high << 32 | planned.memory_offset_low
        if offset + size > sizes[planned.memory_id]:
            arena = sizes[planned.memory_id]
            yield f"{size} bytes at {offset} of arena {planned.memory_id - 1}, which has {arena}"

    def instruction(self, instruction: Instruction, count: int) -> Iterator[str]:
        call = instruction.instr_args
        if isinstance(call, (KernelCall, DelegateCall)):
            kernel = isinstance(call, KernelCall)
            index = call.op_index if isinstance(call, KernelCall) else call.delegate_index
            table = self.plan.operators if kernel else self.plan.delegates
            what = "operator" if kernel else "delegate"
            if not 0 <= index < len(table):
                yield f"it calls {what} {index} of {len(table)}"
            for i, arg in enumerate(call.args):
                yield from self.index(f"argument {i}", arg)
        elif isinstance(call, MoveCall):
            yield from self.index("the source", call.move_from)
            yield from self.index("the target", call.move_to)
        elif isinstance(call, JumpFalseCall):
            yield from self.jump(call, count)
        elif isinstance(call, FreeCall):
            yield from self.expect("what it frees", call.value_index, (Tensor,))
        elif isinstance(call, UnknownMember):
            yield f"instruction kind {call.tag} is not known to this etx-schema"
        else:
            yield "it has no kind"

    def jump(self, call: JumpFalseCall, count: int) -> Iterator[str]:
        if not 0 <= call.destination_instruction <= count:
            yield f"it jumps to instruction {call.destination_instruction} of {count}"
        yield from self.expect("the condition", call.cond_value_index, (Bool, Int, Tensor))

    def expect(self, what: str, index: int, types: tuple[type, ...]) -> Iterator[str]:
        kind = self.kind(index)
        if kind is None:
            yield from self.index(what, index)
        elif kind not in types:
            kinds = " or ".join(each.__name__ for each in types)
            yield f"{what} is value {index}, a {kind.__name__}, expected {kinds}"


def _shape(tensor: Tensor) -> Iterator[str]:
    if tensor.scalar_type not in DTYPES:
        yield f"scalar type {int(tensor.scalar_type)}, which does not exist"
    if len(tensor.sizes) > MAX_RANK:
        yield f"rank {len(tensor.sizes)}, at most {MAX_RANK} is allowed"
        return
    if any(size < 0 for size in tensor.sizes):
        yield f"sizes {tensor.sizes}"
    elif tensor.scalar_type in DTYPES and tensor_nbytes(tensor) > MAX_BYTES:
        yield f"sizes {tensor.sizes} overflow"
    if sorted(tensor.dim_order) != list(range(len(tensor.sizes))):
        yield (
            f"dim order {tensor.dim_order[:20]}, expected a permutation of {len(tensor.sizes)} "
            "dimensions"
        )
