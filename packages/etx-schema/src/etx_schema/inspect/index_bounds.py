# SPDX-License-Identifier: BSD-3-Clause
"""Which integers a method takes: an input that indexes a table is less than its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from etx_schema._generated.program import (
    ExecutionPlan,
    Int,
    KernelCall,
    OptionalTensorList,
    ScalarType,
    Tensor,
    TensorList,
    TensorShapeDynamism,
)
from etx_schema.dtypes import tensor_nbytes
from etx_schema.inspect.reads_writes import effects
from etx_schema.operator_names import operator_name

__all__ = ["index_bounds"]

BY_DIMENSION = ("index_select", "gather", "scatter", "scatter_add", "index_add", "index_copy")
MOVED = (
    "alias_copy",
    "cat",
    "clone",
    "_clone_dim_order",
    "copy",
    "expand_copy",
    "permute_copy",
    "repeat",
    "select_copy",
    "slice_copy",
    "split_copy",
    "split_with_sizes_copy",
    "squeeze_copy",
    "stack",
    "t_copy",
    "_to_copy",
    "_to_dim_order_copy",
    "transpose_copy",
    "unsqueeze_copy",
    "view_copy",
)


def index_bounds(plan: ExecutionPlan) -> dict[int, int]:
    """Return how many integers from 0 on each input may hold, by its position, where that is known.

    Inputs are followed through what only moves numbers; 1 where a table's size is not fixed.
    """
    origins = _Origins(plan)
    bounds: dict[int, int] = {}
    for step, effect in zip(plan.chains[0].instructions, effects(plan), strict=True):
        call = step.instr_args
        name = ""
        if isinstance(call, KernelCall):
            key = operator_name(plan, call.op_index)
            name = key.partition("::")[2].partition(".")[0].rstrip("_")
            for slot, rows in _uses(plan, name, call.args):
                for place in origins.of(slot):
                    bounds[place] = min(rows, bounds.get(place, rows))
        moves = name in MOVED or effect.alias is not None
        found = {place for slot in effect.reads for place in origins.of(slot)} if moves else set()
        for slot in effect.writes if effect.alias is None else effect.alias[:1]:
            origins.put(slot, found)
    return bounds


class _Origins:
    """Of which inputs slots hold numbers; slots at the same place of memory hold the same."""

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan
        self.known: dict[int, set[int]] = {}
        self.written: list[tuple[int, range, set[int]]] = []
        for place, slot in enumerate(plan.inputs):
            self.put(slot, {place})

    def put(self, slot: int, places: set[int]) -> None:
        """Let a slot hold what comes from inputs at these places."""
        self.known[slot] = places
        where = self._where(slot)
        if where is not None:
            self.written.append((*where, places))

    def of(self, slot: int) -> set[int]:
        """Return the places of the inputs whose numbers a slot holds."""
        where = self._where(slot)
        if slot in self.known or where is None:
            return self.known.get(slot, set())
        memory, at = where
        return next(
            (
                places
                for other, span, places in reversed(self.written)
                if other == memory and span.start < at.stop and at.start < span.stop
            ),
            set(),
        )

    def _where(self, slot: int) -> tuple[int, range] | None:
        value = self.plan.values[slot].val
        if not isinstance(value, Tensor) or value.allocation_info is None:
            return None
        info = value.allocation_info
        start = info.memory_offset_low | info.memory_offset_high << 32
        size = tensor_nbytes(value)
        return info.memory_id, range(start, start + max(1, size))


def _uses(plan: ExecutionPlan, name: str, args: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the slots that an operator takes indices from, and how many rows there are."""
    if name == "embedding":
        yield args[1], _size(plan, args[0], 0)
    elif name.startswith("embedding_"):
        yield from ((slot, _size(plan, args[0], 0)) for slot in args[1:] if _is_index(plan, slot))
    elif name in BY_DIMENSION:
        dim = plan.values[args[1]].val
        if isinstance(dim, Int):
            yield args[2], _size(plan, args[0], dim.int_val)
    elif name in ("index", "index_put", "_unsafe_index"):
        items = plan.values[args[1]].val
        slots = items.items if isinstance(items, (TensorList, OptionalTensorList)) else ()
        for dim_index, slot in enumerate(slots):
            if slot >= 0 and _is_index(plan, slot):
                yield slot, _size(plan, args[0], dim_index)


def _is_index(plan: ExecutionPlan, slot: int) -> bool:
    value = plan.values[slot].val
    kinds = (ScalarType.INT, ScalarType.LONG)
    return isinstance(value, Tensor) and value.scalar_type in kinds


def _size(plan: ExecutionPlan, slot: int, dim: int) -> int:
    value = plan.values[slot].val
    if not isinstance(value, Tensor) or value.shape_dynamism != TensorShapeDynamism.STATIC:
        return 1
    return max(1, value.sizes[dim]) if -len(value.sizes) <= dim < len(value.sizes) else 1
