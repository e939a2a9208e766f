# SPDX-License-Identifier: BSD-3-Clause
"""How far each operator of a program is from torch's, with the inputs that it gets there.

``python -m etx_kernels_aten.compare model.pte [--kernels portable] [--seed 0] [INPUT.npz ...]``
runs the program on torch's kernels and each of its instructions on other ones as well.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import etx_runtime
import numpy as np
import torch
from etx_runtime.commands.samples import InputOptions, prepare_calls
from etx_schema import (
    Bool,
    Double,
    EtxError,
    EValue,
    Int,
    KernelCall,
    Operator,
    PteFile,
    Tensor,
    read_pte,
    serialize_pte,
)
from etx_schema.operator_names import operator_name
from etx_schema.streams import complain

Array = np.ndarray[Any, Any]
NUMBERS = {Int: "int_val", Double: "double_val", Bool: "bool_val"}


@dataclass(frozen=True)
class Row:
    """An instruction: how far its results are from torch's, or why it cannot be told."""

    instruction: int
    operator: str
    difference: float
    largest: float
    problem: str = ""

    def __str__(self) -> str:
        told = self.problem or f"differs by {self.difference:.3g} of {self.largest:.3g}"
        return f"{self.instruction:4} {self.operator:40} {told}"


def compare(
    pte: PteFile, inputs: Sequence[Any], kernels: str = "portable", method: str = "forward"
) -> Iterator[Row]:
    """Yield a row for each kernel call of a method without jumps.

    Errors: ValueError for a method with jumps or delegates; LoadError where torch lacks a kernel.
    """
    (index,) = (i for i, p in enumerate(pte.program.execution_plan) if p.name == method)
    steps = pte.program.execution_plan[index].chains[0].instructions
    if any(not isinstance(step.instr_args, KernelCall) for step in steps):
        raise ValueError(f"method {method!r} has jumps or delegates; compare one without")
    for number, step in enumerate(steps):
        call = step.instr_args
        assert isinstance(call, KernelCall)
        yield _row(pte, index, number, call, inputs, kernels)


def _row(
    pte: PteFile, index: int, number: int, call: KernelCall, inputs: Sequence[Any], kernels: str
) -> Row:
    plan = pte.program.execution_plan[index]
    name = operator_name(plan, call.op_index)
    slots = list(dict.fromkeys(_leaves(plan.values, call.args)))
    changing = [i for i in slots if _is_planned(plan.values[i]) or _is_number(plan.values[i])]
    tensors = [i for i in changing if _is_planned(plan.values[i])]
    if not tensors:
        return Row(number, name, 0.0, 0.0, "computes a number")
    before = _run(pte, index, 0, number, changing, inputs, "aten", plan.inputs)
    expected = _alone(pte, index, number, changing, tensors, before, "aten")
    try:
        given = _alone(pte, index, number, changing, tensors, before, kernels)
    except etx_runtime.LoadError:
        return Row(number, name, 0.0, 0.0, f"is not among the kernels {kernels}")
    except etx_runtime.ExecutionError as error:
        return Row(number, name, 0.0, 0.0, str(error))
    results = set(_leaves(plan.values, call.args[-1:]))
    pairs = [(a, b) for slot, a, b in zip(tensors, given, expected, strict=True) if slot in results]
    far = max((_distance(a, b) for a, b in pairs), default=0.0)
    return Row(number, name, far, max((_magnitude(b) for _, b in pairs), default=0.0))


def _leaves(values: Sequence[EValue], args: Sequence[int]) -> Iterator[int]:
    for i in args:
        items = getattr(values[i].val, "items", None)
        has_slots = items is not None and all(isinstance(k, int) for k in items)
        is_slots = has_slots and type(values[i].val).__name__ not in ("BoolList", "DoubleList")
        if is_slots:
            yield from (k for k in items or () if k >= 0)
        else:
            yield i


def _is_planned(value: EValue) -> bool:
    return isinstance(value.val, Tensor) and value.val.allocation_info is not None


def _is_number(value: EValue) -> bool:
    return type(value.val) in NUMBERS


def _run(
    pte: PteFile,
    index: int,
    begin: int,
    end: int,
    outputs: Sequence[int],
    inputs: Sequence[Any],
    kernels: str,
    given: Sequence[int],
) -> list[Any]:
    """Run instructions [begin, end) and return the values of `outputs` after them."""
    part = copy.copy(pte)
    part.program = copy.copy(pte.program)
    plan = copy.copy(pte.program.execution_plan[index])
    chain = copy.copy(plan.chains[0])
    steps = [copy.deepcopy(step) for step in chain.instructions[begin:end]]
    plan.operators = _used(plan.operators, [step.instr_args for step in steps])
    chain.instructions = steps
    plan.chains = [chain]
    plan.inputs, plan.outputs = list(given), list(outputs)
    plan.container_meta_type = None
    part.program.execution_plan = [plan]
    part.named_data = {}
    loaded = etx_runtime.Runtime.get().load_program(serialize_pte(part), kernels=kernels)
    return loaded.load_method(plan.name or "").execute(list(inputs))


def _used(operators: Sequence[Operator], calls: Sequence[Any]) -> list[Operator]:
    """Return the operators of `calls`, renumbered to be among them only."""
    numbers = sorted({call.op_index for call in calls})
    for call in calls:
        call.op_index = numbers.index(call.op_index)
    return [operators[number] for number in numbers]


def _alone(
    pte: PteFile,
    index: int,
    number: int,
    changing: Sequence[int],
    tensors: Sequence[int],
    before: Sequence[Any],
    kernels: str,
) -> list[Array]:
    """Run one instruction on the values `before` it and return the tensors after it."""
    part = copy.copy(pte)
    part.program = copy.copy(pte.program)
    plan = copy.copy(pte.program.execution_plan[index])
    plan.values = list(plan.values)
    for slot, value in zip(changing, before, strict=True):
        kind = type(plan.values[slot].val)
        if kind in NUMBERS:
            plan.values[slot] = EValue(val=kind(**{NUMBERS[kind]: value}))
    part.program.execution_plan = list(pte.program.execution_plan)
    part.program.execution_plan[index] = plan
    inputs = [v for slot, v in zip(changing, before, strict=True) if slot in set(tensors)]
    return _run(part, index, number, number + 1, tensors, inputs, kernels, tensors)


def _wide(array: Any) -> Array:
    plain = np.asarray(array)
    return plain.astype(np.complex128 if np.iscomplexobj(plain) else np.float64)


def _distance(given: Any, expected: Any) -> float:
    """Return the largest difference, infinity where sizes or what is not a number differ."""
    a, b = _wide(given), _wide(expected)
    if a.shape != b.shape:
        return float("inf")
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        far = np.abs(np.where(same, 0, a) - np.where(same, 0, b))
    return float(np.nan_to_num(far, nan=np.inf).max(initial=0.0))


def _magnitude(expected: Any) -> float:
    finite = np.abs(_wide(expected))
    return float(finite[np.isfinite(finite)].max(initial=0.0))


def _samples(method: etx_runtime.Method, seed: int) -> list[Any]:
    """Return random inputs at the largest sizes; numbers as they were exported."""
    draw = torch.Generator().manual_seed(seed)
    inputs: list[Any] = []
    for index, info in enumerate(method.inputs):
        if info.dtype is None or info.shape is None:
            inputs.append(method.input_value(index))
            continue
        dtype = getattr(torch, info.dtype)
        if dtype.is_floating_point or dtype.is_complex:
            inputs.append(torch.randn(info.shape, generator=draw).to(dtype))
        else:
            inputs.append(torch.randint(0, 2, info.shape, generator=draw).to(dtype))
    return inputs


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line an instruction, the farthest last; return 2 where that cannot be told."""
    parser = argparse.ArgumentParser(prog="python -m etx_kernels_aten.compare")
    parser.add_argument("file", help="the program")
    parser.add_argument("inputs", nargs="*", help=".npy or .npz files; random numbers without")
    parser.add_argument("--kernels", default="portable", help="the kernels to compare with torch's")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs")
    try:
        rows = _rows(parser.parse_args(argv))
    except (EtxError, ValueError) as error:
        complain(str(error))
        return 2
    for row in sorted(rows, key=lambda row: row.difference / max(row.largest, 1e-30)):
        print(row)
    return 0


def _rows(options: argparse.Namespace) -> list[Row]:
    program = etx_runtime.Runtime.get().load_program(options.file, kernels="aten")
    method = program.load_method("forward")
    if options.inputs:
        calls = prepare_calls(method, InputOptions(files=[("", path) for path in options.inputs]))
    else:
        calls = [_samples(method, options.seed)]
    if len(calls) != 1:
        raise EtxError(f"expected inputs for one call, got {len(calls)} sets")
    return list(compare(read_pte(options.file), calls[0], options.kernels))


if __name__ == "__main__":
    sys.exit(main())
