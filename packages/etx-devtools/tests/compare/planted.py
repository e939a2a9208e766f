# SPDX-License-Identifier: BSD-3-Clause
"""Programs whose parts are changed, and the report that leads to the change."""

from __future__ import annotations

import copy
from functools import cache

import etx_runtime
import numpy as np
import torch
from compared_models import content, exported, rows
from etx_devtools.compare import compare
from etx_devtools.compare.here import Here
from etx_exir import to_edge
from etx_quant import quantize
from etx_schema import (
    EValue,
    JumpFalseCall,
    KernelCall,
    ScalarType,
    Tensor,
    read_pte,
    serialize_pte,
)
from etx_schema.operator_names import operator_name


@cache
def quantized(name="convolutions"):
    """Return an int8 model as an exported program, its inputs, and its file of integer kernels."""
    torch.manual_seed(0)
    module, inputs, _ = rows()[name]
    model = quantize(module, [(torch.randn(1, 3, 8, 8),) for _ in range(4)])
    program = torch.export.export(model, inputs)
    return program, inputs, serialize_pte(to_edge(program).to_executorch().pte_file)


def is_still_wrong(program, inputs, expected, count):
    """Whether a program of `count` instructions departs from what is right."""
    (chain,) = read_pte(program).program.execution_plan[0].chains
    assert len(chain.instructions) == count
    method = etx_runtime.Runtime.get().load_program(str(program)).load_method("forward")
    with np.load(inputs) as given, np.load(expected) as right:
        got = method.execute([given[str(n)] for n in range(len(given))])
        return any(not np.allclose(g, right[str(n)], 1e-4, 1e-5) for n, g in enumerate(got))


class Plan:
    """A method whose parts are changed; `turn` counts from 0 among calls of an operator."""

    def __init__(self, name):
        if name == "int8":
            self.program, self.inputs, data = quantized()
        else:
            (self.program, self.inputs), data = exported(name), content(name)
        self.pte = read_pte(data)
        self.plan = self.pte.program.execution_plan[0]
        self.steps = self.plan.chains[0].instructions
        self.calls = [self.inputs]
        self.source = None

    def call(self, operator, turn=0):
        """Return number and arguments of a call of `operator`."""
        found = [
            (number, step.instr_args.args)
            for number, step in enumerate(self.steps)
            if isinstance(step.instr_args, KernelCall)
            and operator_name(self.plan, step.instr_args.op_index) == operator
        ]
        return found[turn]

    def tensor(self, slot):
        return self.plan.values[slot].val

    def add(self, value):
        self.plan.values.append(EValue(val=value))
        return len(self.plan.values) - 1

    def change_constant(self, slot, change, dtype=np.float32):
        """Change the bytes of a constant."""
        index = self.tensor(slot).data_buffer_idx - 1
        data = np.frombuffer(bytes(self.pte.constants[index]), dtype)
        self.pte.constants[index] = change(data.copy()).tobytes()

    def rename(self, operator, name, turn=0):
        """Let one call of `operator` be of another; return its number."""
        number, _ = self.call(operator, turn)
        call = self.steps[number].instr_args
        changed = copy.copy(self.plan.operators[call.op_index])
        changed.name = name
        self.plan.operators.append(changed)
        call.op_index = len(self.plan.operators) - 1
        return number

    def run_another(self, change):
        """Run a changed program, while the file says that it is the one it was."""
        right = read_pte(serialize_pte(self.pte))
        number = change(self)
        self.source = Here(self.pte, self.plan.name)
        self.pte = right
        return number

    def report(self):
        return compare(self.pte, self.program, self.calls, source=self.source)


def scaled(part, factor):
    def change(data):
        data[: max(1, int(len(data) * part))] *= factor
        return data

    return change


def to_nan(data):
    data[1] = np.nan
    return data


def weight(operator, turn, argument, change):
    def plant(plan):
        number, args = plan.call(operator, turn)
        plan.change_constant(args[argument], change)
        return number

    return plant


def renamed(operator, name, turn=0):
    return lambda plan: plan.rename(operator, name, turn)


def wrong_kernel(operator, name, turn=0):
    return lambda plan: plan.run_another(renamed(operator, name, turn))


def swapped(operator):
    def plant(plan):
        number, args = plan.call(operator)
        args[:2] = args[1::-1]
        return number

    return plant


def argument(operator, place, value, turn=0):
    def plant(plan):
        number, args = plan.call(operator, turn)
        args[place] = plan.add(value)
        return number

    return plant


def read_instead(operator, place, other, turn=0):
    """Let a call read the result of another operator."""

    def plant(plan):
        number, args = plan.call(operator, turn)
        args[place] = plan.call(other)[1][-1]
        return number

    return plant


def dim_order(operator, place, order):
    """Let a call read a constant in another order than it is stored."""

    def plant(plan):
        number, args = plan.call(operator)
        tensor = copy.copy(plan.tensor(args[place]))
        tensor.dim_order = order
        args[place] = plan.add(tensor)
        return number

    return plant


def overlap(writer, reader, place, turns=(0, 0)):
    """Let `writer` write where an argument of `reader`, which comes later, lies."""

    def plant(plan):
        _, read = plan.call(reader, turns[1])
        number, args = plan.call(writer, turns[0])
        plan.tensor(args[-1]).allocation_info = plan.tensor(read[place]).allocation_info
        return number

    return plant


def other_branch(plan):
    """Let the jump that chooses go on where it should leave."""
    number = next(n for n, s in enumerate(plan.steps) if isinstance(s.instr_args, JumpFalseCall))
    call = copy.copy(plan.steps[number].instr_args)
    plan.steps[number] = copy.copy(plan.steps[number])
    call.destination_instruction = number + 1
    plan.steps[number].instr_args = call
    plan.calls = [(-plan.inputs[0],)]
    return number


def int8_weight(operator):
    def plant(plan):
        number, args = plan.call(operator)
        slot = next(
            slot
            for slot in args[1:-1]
            if isinstance(plan.tensor(slot), Tensor)
            and plan.tensor(slot).data_buffer_idx
            and plan.tensor(slot).scalar_type == ScalarType.CHAR
        )
        plan.change_constant(slot, lambda data: data // 2, np.int8)
        return number

    return plant


def initial_state(plan):
    """Let the file begin with another value of a buffer."""
    number, args = plan.call("aten::add.out")
    index = plan.tensor(args[0]).data_buffer_idx - 1
    data = np.frombuffer(bytes(plan.pte.mutable_data[index]), np.float32).copy()
    plan.pte.mutable_data[index] = (data + 1).tobytes()
    return number
