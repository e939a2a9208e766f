# SPDX-License-Identifier: BSD-3-Clause
"""The memory of a method as its instructions run: what each of them reads, from what was recorded.

Planned memory is kept byte by byte, as the plan lays it out: views, parts and values that overwrite
each other are what they are on the device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from etx_schema import (
    Bool,
    Double,
    ExecutionPlan,
    Int,
    KernelCall,
    MoveCall,
    PteFile,
)
from etx_schema import Tensor as WireTensor
from etx_schema.dtypes import dtype_name
from torch import Tensor

__all__ = ["Memory", "UnknownValueError", "dtype_of", "initial_arenas", "state_slots"]

NUMBERS = {Int: "int_val", Double: "double_val", Bool: "bool_val"}
VIEW_ARGUMENTS = 3
Arenas = dict[int, Any]
"""Planned memory by memory id, as bytes."""


class UnknownValueError(Exception):
    """Why the value of a slot is not known."""


@dataclass(frozen=True)
class _Write:
    """Which bytes of planned memory an instruction wrote, -1 for the caller."""

    instruction: int
    slot: int
    memory_id: int
    start: int
    end: int


class Memory:
    """The values that the slots of a method hold, before its first instruction at first.

    `arenas` are written: what a call leaves there is what the next one finds.
    """

    def __init__(
        self, pte: PteFile, plan: ExecutionPlan, inputs: Sequence[Any], arenas: Arenas
    ) -> None:
        self.pte, self.plan, self.arenas = pte, plan, arenas
        self.held: dict[int, Any] = {}
        self.log: list[_Write] = []
        self.last: dict[int, _Write] = {}
        for slot, given in zip(plan.inputs, inputs, strict=True):
            self.write(slot, given)

    def write(self, slot: int, result: Any, instruction: int = -1) -> None:
        """Let `slot` hold `result`, a tensor or a number, that `instruction` has computed."""
        self.held[slot] = result
        value = self.plan.values[slot].val
        if isinstance(value, WireTensor) and isinstance(result, Tensor):
            data = _bytes(result, list(value.dim_order))
            _put(self.arenas, value, data)
            info = value.allocation_info
            if info is not None:
                start = info.memory_offset_low | info.memory_offset_high << 32
                place = (info.memory_id, start, start + data.size)
                self.last[slot] = _Write(instruction, slot, *place)
                self.log.append(self.last[slot])

    def overwritten(self, slot: int) -> tuple[int, int] | None:
        """Return who wrote `slot`, and who wrote to its memory since then other bytes, if any did.

        A slot that was not written is known by nobody.
        """
        mine = self.last.get(slot)
        held, value = self.held.get(slot), self.plan.values[slot].val
        if mine is None or not isinstance(held, Tensor) or not isinstance(value, WireTensor):
            return None
        before = _bytes(held, list(value.dim_order))
        now = self.arenas[mine.memory_id][mine.start : mine.start + before.size]
        changed = np.flatnonzero(before[: now.size] != now)
        if not changed.size:
            return None
        place = mine.start + int(changed[0])
        for item in reversed(self.log):
            if item is mine:
                break
            if item.memory_id == mine.memory_id and item.start <= place < item.end:
                return mine.instruction, item.instruction
        return None

    def step(self, instruction: Any) -> None:
        """Do what a move or the making of a view does."""
        call = instruction.instr_args
        if isinstance(call, MoveCall):
            self.held[call.move_to] = self.read(call.move_from)
        elif isinstance(call, KernelCall) and len(call.args) == VIEW_ARGUMENTS:
            operator = self.plan.operators[call.op_index]
            if operator.name == "executorch_prim::et_view":
                sizes: Any = self.plan.values[call.args[1]].val
                shape = [int(self.read(item)) for item in sizes.items]
                self.held[call.args[2]] = self.read(call.args[0]).reshape(shape)
            elif operator.name == "etx::view_at":
                made: Any = self.plan.values[call.args[2]].val
                first = int(self.read(call.args[1]))
                self.held[call.args[2]] = part_of(self.read(call.args[0]), first, made.sizes)

    def read(self, slot: int) -> Any:
        """Return what `slot` holds; UnknownValueError where that was not recorded."""
        value = self.plan.values[slot].val
        if not isinstance(value, WireTensor):
            return self._number(slot, value)
        if value.allocation_info is None:
            return self.held[slot] if slot in self.held else self._constant(value)
        known = self.held.get(slot)
        if known is None and value.shape_dynamism:
            raise UnknownValueError("it reads a view whose size is not recorded")
        return self._get(value, list(value.sizes if known is None else known.shape))

    def _number(self, slot: int, value: Any) -> Any:
        if slot in self.held:
            return self.held[slot]
        for kind, name in NUMBERS.items():
            if isinstance(value, kind):
                return getattr(value, name)
        return None

    def _constant(self, value: WireTensor) -> Tensor:
        if not 0 < value.data_buffer_idx <= len(self.pte.constants):
            raise UnknownValueError("it reads weights that are stored beside the file")
        data = np.frombuffer(self.pte.constants[value.data_buffer_idx - 1], np.uint8)
        return _tensor(data, value, list(value.sizes))

    def _get(self, value: WireTensor, shape: list[int]) -> Tensor:
        arena, offset = _place(self.arenas, value)
        if arena is None:
            raise UnknownValueError("it reads memory of no known arena")
        return _tensor(arena[offset:], value, shape)


def initial_arenas(pte: PteFile, plan: ExecutionPlan) -> Arenas:
    """Return planned memory as loading leaves it: zeros, and the initial values of buffers."""
    sizes = plan.non_const_buffer_sizes
    arenas = {i: np.zeros(size, np.uint8) for i, size in enumerate(sizes) if i}
    for value in plan.values:
        tensor = value.val
        if isinstance(tensor, WireTensor) and 0 < tensor.data_buffer_idx <= len(pte.mutable_data):
            data = pte.mutable_data[tensor.data_buffer_idx - 1]
            _put(arenas, tensor, np.frombuffer(data, np.uint8))
    return arenas


def state_slots(plan: ExecutionPlan) -> Iterator[tuple[int, str]]:
    """Yield the slots of mutable buffers with their names."""
    for slot, value in enumerate(plan.values):
        tensor = value.val
        if isinstance(tensor, WireTensor) and tensor.allocation_info is not None:
            info = tensor.extra_tensor_info
            if info is not None and info.fully_qualified_name:
                yield slot, info.fully_qualified_name


def _place(arenas: Arenas, value: WireTensor) -> tuple[Any, int]:
    info = value.allocation_info
    if info is None or info.memory_id not in arenas:
        return None, 0
    return arenas[info.memory_id], info.memory_offset_low | info.memory_offset_high << 32


def _put(arenas: Arenas, value: WireTensor, data: Any) -> None:
    arena, offset = _place(arenas, value)
    if arena is not None:
        arena[offset : offset + data.size] = data[: max(0, arena.size - offset)]


def part_of(source: torch.Tensor, first: int, sizes: Sequence[int]) -> torch.Tensor:
    """Return the elements of `source` from `first` on, in row-major order, as `sizes`."""
    return source.reshape(-1)[first : first + math.prod(sizes)].reshape(list(sizes))


def dtype_of(value: WireTensor) -> torch.dtype:
    """Return torch's type of the elements; UnknownValueError where it has none."""
    found = getattr(torch, dtype_name(value.scalar_type) or "", None)
    if not isinstance(found, torch.dtype):
        raise UnknownValueError(f"torch has no dtype {dtype_name(value.scalar_type)}")
    return found


def _bytes(tensor: Tensor, order: list[int]) -> Any:
    """Return the bytes of `tensor` with its dimensions laid out in `order`, outermost first."""
    lined = tensor.detach().permute(order) if len(order) == tensor.dim() else tensor.detach()
    flat = lined.contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy() if flat.numel() else np.zeros(0, np.uint8)


def _tensor(data: Any, value: WireTensor, shape: list[int]) -> Tensor:
    dtype, order = dtype_of(value), list(value.dim_order)
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return torch.empty(shape, dtype=dtype)
    flat = torch.from_numpy(data[: count * dtype.itemsize].copy()).view(dtype)
    if not shape:
        return flat.reshape(())
    inverse = [order.index(dim) for dim in range(len(shape))]
    return flat.reshape([shape[dim] for dim in order]).permute(inverse)
