# SPDX-License-Identifier: BSD-3-Clause
"""Writes calls of kernels as programs, each tensor in an arena of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import etx_schema as es
import torch
from arguments import DTYPES, FORMATS, Out, Over, Parameter, Same, Slot, dim_order_of

MOST_BYTES = 16384
MANY_BYTES = 4096
MOST_ALIKE = 3


class Recorder:
    """Programs of the calls made: of a kernel MOST_ALIKE with the same dtypes and few bytes,
    MOST_ALIKE with many, MOST_ALIKE that fail."""

    def __init__(self) -> None:
        self.programs: dict[str, bytes] = {}
        self.counts: Counter[tuple[Any, ...]] = Counter()

    def record(
        self,
        kernel: str,
        parameters: Sequence[Parameter],
        args: Sequence[Any],
        written: Sequence[Any],
    ) -> None:
        """Record a call; `written` are the results in order, fewer when it failed."""
        tensors = [t for a in args for t in (a if isinstance(a, (list, tuple)) else [a])]
        tensors = [t for t in tensors if isinstance(t, (torch.Tensor, Out))]
        size = sum(map(nbytes, tensors))
        key = (kernel, size > MANY_BYTES, *(t.dtype for t in tensors if written))
        if self.counts[key] >= MOST_ALIKE or size > MOST_BYTES:
            return
        self.counts[key] += 1
        name = f"{kernel.replace('::', '.')}-{len(self.programs)}"
        self.programs[name] = Recorded(kernel, parameters, args, written).serialize()


def nbytes(tensor: torch.Tensor | Out) -> int:
    slack = tensor.slack if isinstance(tensor, Out) else 0
    return math.prod(size + slack for size in tensor.shape) * tensor.dtype.itemsize


class Recorded:
    """One call as a method without inputs."""

    def __init__(
        self,
        kernel: str,
        parameters: Sequence[Parameter],
        args: Sequence[Any],
        written: Sequence[Any],
    ) -> None:
        self.plan = es.ExecutionPlan(name="forward", non_const_buffer_sizes=[0])
        self.plan.values, self.plan.delegates, self.plan.inputs = [], [], []
        self.data: list[bytes] = []
        self.written = list(written)
        indices: list[int] = []
        for parameter, arg in zip(parameters, args, strict=True):
            if isinstance(arg, Same):
                indices.append(indices[arg.index])
            elif isinstance(arg, Over):
                tensor: Any = self.plan.values[indices[arg.index]].val
                indices.append(self.value(replace(tensor, data_buffer_idx=0)))
            else:
                indices.append(self.argument(parameter, arg))
        outs = [
            i for p, i in zip(parameters, indices, strict=True) if p.written and p.letter != "v"
        ]
        base, _, overload = kernel.partition(".")
        self.plan.operators = [es.Operator(name=base, overload=overload)]
        call = es.KernelCall(op_index=0, args=[*indices, *outs])
        instruction = es.Instruction(instr_args=call)
        self.plan.chains = [es.Chain(inputs=[], outputs=[], instructions=[instruction])]
        self.plan.outputs = outs

    def serialize(self) -> bytes:
        program = es.Program(version=0, execution_plan=[self.plan])
        return es.serialize_pte(es.PteFile(program, mutable_data=self.data))

    def value(self, member: object) -> int:
        self.plan.values.append(es.EValue(val=member))
        return len(self.plan.values) - 1

    def argument(self, parameter: Parameter, arg: Any) -> int:
        if isinstance(arg, Slot):
            return self.number("s", self.written.pop(0) if self.written else 0)
        if arg is None:
            return self.value(es.Null())
        match parameter.letter:
            case "T":
                return self.tensor(arg)
            case "L":
                return self.value(es.TensorList(items=[self.tensor(t) for t in arg]))
            case "O":
                items = [-1 if t is None else self.tensor(t) for t in arg]
                return self.value(es.OptionalTensorList(items=items))
            case "I":
                numbers = [arg] if isinstance(arg, int) else arg
                return self.value(es.IntList(items=[self.number("i", int(n)) for n in numbers]))
            case "D":
                reals = [arg] if isinstance(arg, float) else arg
                return self.value(es.DoubleList(items=[float(n) for n in reals]))
            case "B":
                return self.value(es.BoolList(items=[bool(n) for n in arg]))
            case "c":
                return self.value(es.String(string_val=arg))
            case letter:
                return self.number(letter, arg)

    def number(self, letter: str, arg: Any) -> int:
        arg = DTYPES.get(arg, arg) if isinstance(arg, torch.dtype) else FORMATS.get(arg, arg)
        arg = arg.item() if isinstance(arg, torch.Tensor) else arg
        if letter == "b" or (letter in "sv" and isinstance(arg, bool)):
            return self.value(es.Bool(bool_val=bool(arg)))
        if letter == "d" or isinstance(arg, float):
            return self.value(es.Double(double_val=float(arg)))
        return self.value(es.Int(int_val=int(arg)))

    def tensor(self, arg: torch.Tensor | Out | float) -> int:
        if isinstance(arg, Out):
            sizes = [size + arg.slack for size in arg.shape]
            order = list(range(len(sizes))) if arg.dim_order is None else list(arg.dim_order)
            length, dtype, stored = nbytes(arg), arg.dtype, None
        else:
            arg = torch.tensor(arg) if isinstance(arg, (int, float)) else arg
            order = dim_order_of(arg) or list(range(arg.dim()))
            sizes, length, dtype = list(arg.shape), nbytes(arg), arg.dtype
            stored = bytes_of(arg, order)
        tensor = es.Tensor(scalar_type=es.ScalarType(DTYPES[dtype]), sizes=sizes, dim_order=order)
        tensor.shape_dynamism = es.TensorShapeDynamism.DYNAMIC_BOUND
        self.plan.non_const_buffer_sizes.append(length)
        arena = len(self.plan.non_const_buffer_sizes) - 1
        tensor.allocation_info = es.AllocationDetails(memory_id=arena)
        if stored:
            self.data.append(stored)
            tensor.data_buffer_idx = len(self.data)
        return self.value(tensor)


def bytes_of(tensor: torch.Tensor, order: Sequence[int]) -> bytes:
    """The elements' bytes in memory order."""
    dense = tensor.detach().permute(*order) if tensor.dim() else tensor.detach()
    return dense.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
