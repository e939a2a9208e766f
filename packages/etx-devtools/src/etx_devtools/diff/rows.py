# SPDX-License-Identifier: BSD-3-Clause
"""The instructions of a method as rows that can be compared between files."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

from etx_schema import (
    DelegateCall,
    ExecutionPlan,
    Int,
    IntList,
    KernelCall,
    PteFile,
    Tensor,
    dtype_name,
)
from etx_schema.dtypes import tensor_nbytes
from etx_schema.inspect.reads_writes import Effect, effects
from etx_schema.operator_names import operator_name
from etx_schema.problem import Origins

__all__ = ["Constant", "Row", "rows_of"]

RECENT = 1000
"""Of what was written before, so much is looked through for the bytes that a view has."""
ITEMS = ("int_val", "double_val", "bool_val", "string_val", "items")


@dataclass(frozen=True)
class Constant:
    """A weight: its index in the file's list, its name where the file says it, and its type."""

    index: int
    name: str
    dtype: str
    sizes: tuple[int, ...]


@dataclass
class Row:
    """An instruction: what it does, to what, and where in the model it comes from."""

    index: int
    operator: str
    module: str = ""
    source: str = ""
    origin: str = ""
    """The operator in the model, where the file says it."""
    arguments: tuple[str, ...] = ()
    constants: tuple[tuple[int, Constant], ...] = ()
    """Argument and weight."""
    inner: tuple[tuple[str, str], ...] = ()
    """Of a delegate's call: (module, operator) of what it holds, as far as the file says it."""
    producers: tuple[int, ...] = field(default=(), repr=False)
    """Instructions whose results it reads."""
    results: tuple[int, ...] = field(default=(), repr=False)
    """The values that it writes."""

    @property
    def place(self) -> str:
        """Module and line, or the index where neither is known."""
        text = ", ".join(part for part in (self.module, self.source) if part)
        return text or f"instruction {self.index}"


class _Reader:
    def __init__(self, pte: PteFile, plan: ExecutionPlan) -> None:
        self.pte, self.plan = pte, plan
        self.origins = Origins.of(pte.named_data)
        self.name = plan.name or ""
        self.texts: dict[int, str] = {}
        self.weights: dict[int, Constant] = {}
        self.operators = [operator_name(plan, i) for i in range(len(plan.operators))]
        self.writer: dict[int, int] = {}
        self.places: dict[int, tuple[int, int, int]] = {}
        self.written: list[tuple[int, int, int, int]] = []
        for index, entry in enumerate(plan.values):
            self._value(index, entry.val)

    def _value(self, index: int, value: Any) -> None:
        if isinstance(value, IntList):
            self.texts[index] = str([self._number(item) for item in value.items])
            return
        if not isinstance(value, Tensor):
            shown = [getattr(value, key) for key in ITEMS if hasattr(value, key)]
            kind = type(value).__name__
            self.texts[index] = f"{shown[0]!r}" if shown and "Tensor" not in kind else kind
            return
        text = f"{dtype_name(value.scalar_type)}{list(value.sizes)}"
        if (place := value.allocation_info) is not None:
            offset = place.memory_offset_high << 32 | place.memory_offset_low
            self.places[index] = place.memory_id, offset, offset + tensor_nbytes(value)
        order = list(value.dim_order)
        self.texts[index] = text if order == sorted(order) else f"{text} in order {order}"
        if value.data_buffer_idx and value.allocation_info is None:
            extra = value.extra_tensor_info
            name = extra.fully_qualified_name if extra is not None else None
            name = name or self.origins.constant(self.name, value.data_buffer_idx) or ""
            sizes = tuple(value.sizes)
            dtype = dtype_name(value.scalar_type)
            self.weights[index] = Constant(value.data_buffer_idx - 1, name, dtype, sizes)

    def _number(self, index: int) -> Any:
        value = self.plan.values[index].val if 0 <= index < len(self.plan.values) else None
        return value.int_val if isinstance(value, Int) else index

    def row(self, index: int, call: Any) -> Row:
        origin = self.origins.get(self.name, index)
        row = Row(index, type(call).__name__)
        row.module, row.source = origin.get("module", ""), origin.get("source", "")
        row.origin = origin.get("op", "")
        arguments: list[int] = getattr(call, "args", [])
        if len(arguments) > 1 and arguments[-1] == arguments[-2]:
            arguments = arguments[:-1]
        if isinstance(call, KernelCall):
            known = 0 <= call.op_index < len(self.operators)
            row.operator = self.operators[call.op_index] if known else "unknown operator"
        elif isinstance(call, DelegateCall):
            row.operator = f"delegate {self._delegate(call.delegate_index)}"
            inner = self.origins.inner(self.name, index).values()
            row.inner = tuple((each.get("module", ""), each.get("op", "")) for each in inner)
        row.arguments = tuple(self.texts.get(i, "") for i in arguments)
        if not self.weights.keys().isdisjoint(arguments):
            found = ((n, self.weights.get(i)) for n, i in enumerate(arguments))
            row.constants = tuple((n, weight) for n, weight in found if weight is not None)
        return row

    def link(self, row: Row, effect: Effect) -> None:
        """Note whose results `row` reads: what wrote the value last, or the memory that it has."""
        found = (self._producer(value) for value in effect.reads)
        row.producers = tuple(dict.fromkeys(each for each in found if each is not None))
        row.results = (*effect.writes, *effect.updates)
        for value in row.results:
            self.writer[value] = row.index
            if value in self.places:
                self.written.append((*self.places[value], row.index))

    def _producer(self, value: int) -> int | None:
        """Return what wrote a value; for a view without a copy, what wrote its bytes."""
        if value in self.writer or value not in self.places or value in self.plan.inputs:
            return self.writer.get(value)
        arena, start, end = self.places[value]
        recent = self.written[-1 : -RECENT - 1 : -1]
        return next(
            (i for memory, a, b, i in recent if memory == arena and a < end and start < b), None
        )

    def _delegate(self, index: int) -> str:
        if not 0 <= index < len(self.plan.delegates):
            return "that does not exist"
        delegate = self.plan.delegates[index]
        place = delegate.processed
        blob: Any = b""
        if place is not None and 0 <= place.index < len(self.pte.delegates):
            blob = self.pte.delegates[place.index]
        return f"{delegate.id} ({len(blob):,} bytes, {zlib.crc32(blob):08x})"


def rows_of(pte: PteFile, plan: ExecutionPlan) -> list[Row]:
    """Return the rows of a method."""
    reader = _Reader(pte, plan)
    instructions = [each for chain in plan.chains for each in chain.instructions]
    rows = [reader.row(i, each.instr_args) for i, each in enumerate(instructions)]
    for row, effect in zip(rows, effects(plan), strict=False):
        reader.link(row, effect)
    return rows
