# SPDX-License-Identifier: BSD-3-Clause
"""Which tensors each instruction of a method reads and writes, from only the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from etx_schema._generated.program import (
    DelegateCall,
    ExecutionPlan,
    Instruction,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    OptionalTensorList,
    Tensor,
    TensorList,
)
from etx_schema.errors import ProgramError
from etx_schema.operator_names import operator_name

VIEW = "executorch_prim::et_view.default"
PART = "etx::view_at.default"
ROW = "executorch_prim::et_copy_index.tensor"


@dataclass(frozen=True)
class Effect:
    """One instruction by value indices of tensors.

    `writes` are overwritten as a whole, `updates` in part; `alias` is (value, the one whose
    memory it has from now on); `jump` is where a false condition leads.
    """

    op: str
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    updates: tuple[int, ...] = ()
    alias: tuple[int, int] | None = None
    jump: int | None = None
    always: bool = False


def effects(plan: ExecutionPlan) -> list[Effect]:
    """Return what the instructions of the first chain of `plan` do."""
    return _Reader(plan).effects


def split_results(plan: ExecutionPlan, args: list[int]) -> tuple[list[int], list[int]]:
    """Split a kernel's arguments into results and the rest, leaving out the repetition."""
    if not args:
        return [], []
    last = plan.values[args[-1]].val if 0 <= args[-1] < len(plan.values) else None
    results = last.items if isinstance(last, TensorList) else [args[-1]]
    rest = args[:-1]
    if results and rest[-len(results) :] == results:
        rest = rest[: -len(results)]
    elif rest[-1:] == args[-1:]:
        rest = rest[:-1]
    return results, rest


class _Reader:
    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan
        self.known = set(plan.inputs)
        for index, value in enumerate(plan.values):
            if isinstance(value.val, Tensor) and value.val.data_buffer_idx:
                self.known.add(index)
        chain = plan.chains[0].instructions if plan.chains else []
        self.effects: list[Effect] = []
        for index, instruction in enumerate(chain):
            try:
                self.effects.append(self._effect(instruction))
            except IndexError as error:
                raise ProgramError(
                    f"method {plan.name!r}, instruction {index}: it names a value or operator "
                    "that the method does not have; `etx check` lists what is wrong"
                ) from error

    def _effect(self, instruction: Instruction) -> Effect:
        call = instruction.instr_args
        effect = Effect("")
        if isinstance(call, KernelCall):
            effect = self._kernel(operator_name(self.plan, call.op_index), call.args)
        elif isinstance(call, DelegateCall):
            effect = self._delegate(call)
        elif isinstance(call, MoveCall):
            both = self._tensors([call.move_to, call.move_from])
            alias = (both[0], both[1]) if len(both) == 2 else None
            effect = Effect("move", reads=both[1:], alias=alias)
        elif isinstance(call, JumpFalseCall):
            condition = self.plan.values[call.cond_value_index].val
            effect = Effect(
                "jump",
                reads=self._tensors([call.cond_value_index]),
                jump=call.destination_instruction,
                always=getattr(condition, "bool_val", None) is False
                and not self._computed(call.cond_value_index),
            )
        self.known.update(effect.reads, effect.writes, effect.updates)
        return effect

    def _computed(self, index: int) -> bool:
        for chain in self.plan.chains:
            for instruction in chain.instructions:
                call = instruction.instr_args
                if isinstance(call, KernelCall) and index in call.args[-1:]:
                    return True
                if isinstance(call, MoveCall) and call.move_to == index:
                    return True
        return index in self.plan.inputs

    def _kernel(self, op: str, args: list[int]) -> Effect:
        if op in (VIEW, PART) and len(args) == 3:
            tensors = self._tensors([args[2], args[0]])
            alias = (tensors[0], tensors[1]) if len(tensors) == 2 else None
            return Effect(op, reads=tensors[1:], alias=alias)
        if op == ROW:
            return Effect(op, reads=self._tensors(args[1:]), updates=self._tensors(args[:1]))
        if op.partition(".")[0].endswith("_"):
            target, rest = self._tensors(args[:1]), self._tensors(args[1:])
            reads = tuple(v for v in rest if v not in target)
            if op.startswith("aten::copy_"):
                return Effect(op, reads=reads, writes=target)
            return Effect(op, reads=rest, updates=target)
        results, arguments = split_results(self.plan, args)
        return Effect(op, reads=self._tensors(arguments), writes=self._tensors(results))

    def _delegate(self, call: DelegateCall) -> Effect:
        """Results come last, and nothing has touched them before."""
        args = self._tensors(call.args)
        first = len(args)
        while first > 0 and args[first - 1] not in self.known:
            first -= 1
        known = 0 <= call.delegate_index < len(self.plan.delegates)
        name = self.plan.delegates[call.delegate_index].id if known else None
        return Effect(f"delegate {name}", reads=args[:first], writes=args[first:])

    def _tensors(self, args: Iterable[int]) -> tuple[int, ...]:
        return tuple(index for arg in args for index in self._items(arg))

    def _items(self, index: int) -> Sequence[int]:
        value = self.plan.values[index].val if 0 <= index < len(self.plan.values) else None
        if isinstance(value, (TensorList, OptionalTensorList)):
            return [item for each in value.items for item in self._items(each)]
        return [index] if isinstance(value, Tensor) else []
