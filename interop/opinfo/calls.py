# SPDX-License-Identifier: BSD-3-Clause
"""A file that calls one kernel, as the format stores such a call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from arguments import DTYPES, FORMATS, dim_order_of
from etx_schema import (
    AllocationDetails,
    Bool,
    BoolList,
    Chain,
    Double,
    DoubleList,
    EValue,
    ExecutionPlan,
    Instruction,
    Int,
    IntList,
    KernelCall,
    Null,
    Operator,
    OptionalTensorList,
    Program,
    PteFile,
    ScalarType,
    String,
    Tensor,
    TensorList,
)
from harness import PLUGIN
from intercept import kernel_name, variant_of
from torch._ops import OpOverload

ALIGNMENT = 16


@dataclass
class OneCall:
    """A call of a kernel: its file, what it is given, and what eager makes of it."""

    kernel: str
    pte: PteFile
    inputs: list[torch.Tensor]
    expected: list[torch.Tensor]


class _Values:
    """The values of a method in the making."""

    def __init__(self) -> None:
        self.items: list[EValue] = []
        self.inputs: list[tuple[int, torch.Tensor]] = []
        self.arena = 0

    def add(self, value: Any) -> int:
        self.items.append(EValue(val=value))
        return len(self.items) - 1

    def given(self, letter: str, arg: Any) -> int:
        """Add an argument; tensors become inputs of the method."""
        if arg is None:
            return self.add(Null())
        if letter == "T":
            tensor = arg if isinstance(arg, torch.Tensor) else torch.tensor(arg)
            return self.input(tensor)
        if letter in "LO":
            found = [-1 if t is None else self.input(t) for t in arg]
            return self.add((TensorList if letter == "L" else OptionalTensorList)(items=found))
        if letter == "I":
            numbers = [arg] if isinstance(arg, int) else list(arg)
            return self.add(IntList(items=[self.add(Int(int_val=int(n))) for n in numbers]))
        if letter == "D":
            return self.add(DoubleList(items=[arg] if isinstance(arg, float) else list(arg)))
        if letter == "B":
            return self.add(BoolList(items=list(arg)))
        if letter == "c":
            return self.add(String(string_val=arg))
        return self.number(letter, arg)

    def number(self, letter: str, arg: Any) -> int:
        arg = DTYPES.get(arg, arg) if isinstance(arg, torch.dtype) else FORMATS.get(arg, arg)
        arg = arg.item() if isinstance(arg, torch.Tensor) else arg
        if letter == "b" or (letter == "s" and isinstance(arg, bool)):
            return self.add(Bool(bool_val=bool(arg)))
        if letter == "d" or isinstance(arg, float):
            return self.add(Double(double_val=float(arg)))
        return self.add(Int(int_val=int(arg)))

    def input(self, tensor: torch.Tensor) -> int:
        order = dim_order_of(tensor)
        rows = order is None or order == list(range(tensor.dim()))
        layout = torch.contiguous_format if rows else torch.channels_last
        plain = torch.empty(tensor.shape, dtype=tensor.dtype, memory_format=layout)
        plain.copy_(tensor.detach())
        index = self.add(_tensor(plain, order))
        self.inputs.append((index, plain))
        return index

    def out(self, reference: torch.Tensor) -> int:
        value = _tensor(reference, dim_order_of(reference))
        low, high = self.arena & 0xFFFFFFFF, self.arena >> 32
        value.allocation_info = AllocationDetails(
            memory_id=1, memory_offset_low=low, memory_offset_high=high
        )
        size = math.prod(reference.shape) * reference.dtype.itemsize
        self.arena += -(-size // ALIGNMENT) * ALIGNMENT
        return self.add(value)


def _tensor(tensor: torch.Tensor, order: Sequence[int] | None) -> Tensor:
    return Tensor(
        scalar_type=ScalarType(DTYPES[tensor.dtype]),
        sizes=list(tensor.shape),
        dim_order=list(order if order is not None else range(tensor.dim())),
    )


def _results(values: _Values, outs: list[int], *, listed: bool) -> list[int]:
    """Return what follows the arguments: where results go, and what the call returns."""
    if listed:
        return [values.add(TensorList(items=outs))] * 2
    return [*outs, outs[0] if len(outs) == 1 else values.add(TensorList(items=outs))]


def one_call(
    op: OpOverload, given: Mapping[str, Any], reference: Sequence[torch.Tensor]
) -> OneCall:
    """Return the call of `op` with arguments by name, whose results eager says."""
    variant = variant_of(op)
    assert variant is not None
    name = kernel_name(variant)
    parameters = PLUGIN.kernels[name].parameters
    names = [a.name for a in variant._schema.arguments if not a.is_out]
    values = _Values()
    args = [values.given(p.letter, given[n]) for p, n in zip(parameters, names, strict=False)]
    if variant is op:
        outs = [args[0]]
        args += outs
    else:
        outs = [values.out(w) for w in reference]
        args += _results(values, outs, listed=parameters[-1].letter == "L")
    operator, _, overload = name.partition(".")
    plan = ExecutionPlan(
        name="forward",
        values=values.items,
        inputs=[index for index, _ in values.inputs],
        outputs=outs,
        chains=[Chain(instructions=[Instruction(instr_args=KernelCall(op_index=0, args=args))])],
        operators=[Operator(name=operator, overload=overload)],
        non_const_buffer_sizes=[0, max(values.arena, ALIGNMENT)],
    )
    pte = PteFile(program=Program(version=0, execution_plan=[plan]))
    return OneCall(name, pte, [tensor for _, tensor in values.inputs], list(reference))
