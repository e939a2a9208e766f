# SPDX-License-Identifier: BSD-3-Clause
"""Run a file in memory: real arenas of bytes, torch's out variants as kernels."""

from __future__ import annotations

import math
import operator

import torch
from etx_exir.ir.dim_order import FILE_NAMESPACE, NAMESPACE
from etx_exir.ir.layout import SCALAR_TYPES
from etx_schema import (
    Bool,
    BoolList,
    DelegateCall,
    Double,
    DoubleList,
    Int,
    IntList,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    Null,
    OptionalTensorList,
    String,
    Tensor,
    TensorList,
)
from toy import DELEGATES

GRAPH_NAMESPACES = {FILE_NAMESPACE: NAMESPACE}
DTYPES = {number: dtype for dtype, number in SCALAR_TYPES.items()}

PRIMITIVES = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "truediv": operator.truediv,
    "mod": operator.mod,
    "eq": operator.eq,
    "gt": operator.gt,
    "lt": operator.lt,
    "ge": operator.ge,
    "le": operator.le,
    "sym_max": max,
    "sym_min": min,
    "neg": operator.neg,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
    "sym_float": float,
    "sym_int": int,
    "sym_not": operator.not_,
    "sym_ite": lambda c, a, b: a if c else b,
}


class Cell:
    """A tensor value: where its bytes are and which sizes it has now."""

    def __init__(self, method, index, tensor):
        self.dtype = DTYPES[int(tensor.scalar_type)]
        self.sizes = list(tensor.sizes)
        self.bound = math.prod(self.sizes)
        self.dim_order = list(tensor.dim_order)
        self.memory, self.offset = None, 0
        if tensor.allocation_info is not None:
            info = tensor.allocation_info
            self.memory = method.arenas[info.memory_id]
            self.offset = info.memory_offset_low + (info.memory_offset_high << 32)
            if tensor.data_buffer_idx:
                self.write_bytes(method.pte.mutable_data[tensor.data_buffer_idx - 1])
        elif tensor.data_buffer_idx:
            blob = bytes(method.pte.constants[tensor.data_buffer_idx - 1])
            self.memory = torch.tensor(list(blob), dtype=torch.uint8)

    @property
    def nbytes(self):
        return math.prod(self.sizes) * self.dtype.itemsize

    def write_bytes(self, blob):
        raw = torch.tensor(list(bytes(blob)), dtype=torch.uint8)
        self.memory[self.offset : self.offset + len(raw)] = raw

    def view(self):
        raw = self.memory[self.offset : self.offset + self.nbytes]
        ordered = raw.clone().view(self.dtype).view([self.sizes[d] for d in self.dim_order])
        inverse = [self.dim_order.index(d) for d in range(len(self.sizes))]
        return ordered.permute(inverse)

    def fresh(self, resizes):
        return torch.empty(0 if resizes else self.sizes, dtype=self.dtype)

    def store(self, value):
        assert value.dtype == self.dtype, (value.dtype, self.dtype)
        assert value.numel() <= self.bound, (tuple(value.shape), self.bound)
        self.sizes = list(value.shape)
        if self.memory is None:
            self.memory = torch.zeros(self.nbytes, dtype=torch.uint8)
        raw = value.permute(self.dim_order).contiguous().reshape(-1).view(torch.uint8)
        self.memory[self.offset : self.offset + len(raw)] = raw


class Method:
    """One loaded method; planned memory starts as garbage, except for initial values."""

    def __init__(self, pte, name="forward"):
        self.pte = pte
        (self.plan,) = [p for p in pte.program.execution_plan if p.name == name]
        generator = torch.Generator().manual_seed(0)
        self.arenas = [
            torch.randint(0, 128, (size,), dtype=torch.uint8, generator=generator)
            for size in self.plan.non_const_buffer_sizes
        ]
        self.values = []
        for index, value in enumerate(self.plan.values):
            member = value.val
            self.values.append(Cell(self, index, member) if type(member) is Tensor else member)
        self.scalars = {
            i: getattr(m, type(m).__name__.lower() + "_val")
            for i, m in enumerate(self.values)
            if type(m) in (Int, Bool, Double, String)
        }
        self.executed = []
        self.jumps = []
        self.delegates = [
            DELEGATES[d.id](
                pte.delegates[d.processed.index], {s.key: s.value for s in d.compile_specs}
            )
            for d in self.plan.delegates
        ]

    def execute(self, *inputs):
        assert len(inputs) == len(self.plan.inputs)
        for index, given in zip(self.plan.inputs, inputs, strict=True):
            if isinstance(given, torch.Tensor):
                self.values[index].store(given)
            elif index in self.scalars:
                self.scalars[index] = given
        instructions = self.plan.chains[0].instructions
        at = 0
        while at < len(instructions):
            at = self.step(instructions[at].instr_args, at)
        return [self.get(index) for index in self.plan.outputs]

    def step(self, call, at):
        if isinstance(call, KernelCall):
            op = self.plan.operators[call.op_index]
            key = f"{op.name}.{op.overload}" if op.overload else op.name
            self.executed.append(key)
            self.kernel(op, call.args)
        elif isinstance(call, MoveCall):
            if call.move_from in self.scalars:
                self.scalars[call.move_to] = self.scalars[call.move_from]
            else:
                self.values[call.move_to] = self.values[call.move_from]
        elif isinstance(call, DelegateCall):
            self.delegate(call)
        elif isinstance(call, JumpFalseCall):
            condition = self.get(call.cond_value_index)
            taken = not (condition.all() if isinstance(condition, torch.Tensor) else condition)
            self.jumps.append(taken)
            if taken:
                return call.destination_instruction
        else:
            raise AssertionError(type(call))
        return at + 1

    def delegate(self, call):
        count, function = self.delegates[call.delegate_index]
        self.executed.append(self.plan.delegates[call.delegate_index].id)
        results = function(*(self.get(index) for index in call.args[:count]))
        for index, value in zip(call.args[count:], results, strict=True):
            if isinstance(value, torch.Tensor):
                self.values[index].store(value)
            else:
                self.scalars[index] = value

    def get(self, index):
        if index < 0:
            return None
        value = self.values[index]
        if isinstance(value, Cell):
            return value.view()
        if index in self.scalars:
            return self.scalars[index]
        if isinstance(value, Null):
            return None
        if isinstance(value, (IntList, TensorList, OptionalTensorList)):
            return [self.get(item) for item in value.items]
        assert isinstance(value, (DoubleList, BoolList))
        return list(value.items)

    def kernel(self, op, args):
        namespace, name = op.name.split("::")
        if namespace == "executorch_prim" or name == "view_at":
            self.primitive(name, args)
        elif name in ("sym_size", "_local_scalar_dense", "sym_numel"):
            given = [self.get(a) for a in args[:-1]]
            self.scalars[args[-1]] = {
                "sym_size": lambda t, d: t.shape[d],
                "sym_numel": lambda t: t.numel(),
                "_local_scalar_dense": lambda t: t.item(),
            }[name](*given)
        elif not op.overload:
            target, source = self.values[args[0]], self.get(args[0]).clone()
            assert args[-1] == args[0]
            given = [self.get(a) for a in args[1:-1]]
            target.store(getattr(torch.ops.aten, name).default(source, *given))
        else:
            operators = getattr(torch.ops, GRAPH_NAMESPACES.get(namespace, namespace))
            self.out_variant(getattr(operators, name), op.overload, args)

    def primitive(self, name, args):
        if name == "et_view":
            source, target = self.values[args[0]], self.values[args[2]]
            shape = torch.empty(source.sizes, device="meta").view(self.get(args[1])).shape
            if target.memory is not None:
                assert target.memory is source.memory
                assert target.offset == source.offset
            target.memory, target.offset = source.memory, source.offset
            target.sizes = list(shape)
        elif name == "view_at":
            source, target = self.values[args[0]], self.values[args[2]]
            size = torch.empty(0, dtype=source.dtype).element_size()
            first, count = self.get(args[1]), math.prod(target.sizes)
            assert 0 <= first <= math.prod(source.sizes) - count
            target.memory, target.offset = source.memory, source.offset + first * size
        elif name == "et_copy_index":
            target, row, index = self.values[args[0]], self.get(args[1]), self.get(args[2])
            kept = target.view()[:index] if index else row.new_empty((0, *row.shape))
            target.store(torch.cat([kept.reshape(index, *row.shape), row[None]]))
        else:
            self.scalars[args[-1]] = PRIMITIVES[name](*[self.get(a) for a in args[:-1]])

    def out_variant(self, packet, overload, args):
        kernel = getattr(packet, overload)
        schema = kernel._schema.arguments
        positional, keywords, outs = [], {}, []
        for argument, index in zip(schema, args, strict=False):
            kind = str(argument.real_type)
            if argument.is_out:
                cells = self.values[index]
                many = isinstance(cells, TensorList)
                items = cells.items if many else [index]
                resizes = packet._qualified_op_name.startswith("aten::")
                fresh = [self.values[i].fresh(resizes) for i in items]
                outs += zip(items, fresh, strict=True)
                keywords[argument.name] = fresh if many else fresh[0]
                continue
            value = self.get(index)
            if "ScalarType" in kind and value is not None:
                value = DTYPES[value]
            elif "MemoryFormat" in kind and value is not None:
                value = [torch.contiguous_format, torch.preserve_format, torch.channels_last][value]
            if argument.kwarg_only:
                keywords[argument.name] = value
            else:
                positional.append(value)
        repeated = args[len(schema) :]
        assert len(repeated) == 1, "the returns are repeated once"
        kernel(*positional, **keywords)
        for index, value in outs:
            self.values[index].store(value)
