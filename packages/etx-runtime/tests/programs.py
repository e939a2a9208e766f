# SPDX-License-Identifier: BSD-3-Clause
"""Build small programs by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import etx_schema as es

FLOAT = es.ScalarType.FLOAT
LONG = es.ScalarType.LONG
BOOL = es.ScalarType.BOOL
SIZES = {FLOAT: 4, LONG: 8, BOOL: 1, es.ScalarType.BFLOAT16: 2, es.ScalarType.HALF: 2}


class Builder:
    """One method, value by value and instruction by instruction."""

    def __init__(self, name: str = "forward") -> None:
        self.plan = es.ExecutionPlan(name=name, non_const_buffer_sizes=[0, 0])
        self.plan.values, self.plan.operators, self.plan.delegates = [], [], []
        self.plan.inputs, self.plan.outputs = [], []
        self.chain = es.Chain(inputs=[], outputs=[], instructions=[])
        self.plan.chains = [self.chain]
        self.constants: list[bytes] = []
        self.mutable: list[bytes] = []
        self.delegates: list[bytes] = []
        self.named: dict[str, es.NamedBlob] = {}

    def value(self, member: object) -> int:
        self.plan.values.append(es.EValue(val=member))
        return len(self.plan.values) - 1

    def tensor(
        self,
        sizes: Sequence[int],
        dtype: es.ScalarType = FLOAT,
        *,
        memory: str = "planned",
        data: bytes | None = None,
        dynamic: bool = False,
        order: Sequence[int] | None = None,
        name: str | None = None,
    ) -> int:
        tensor = es.Tensor(scalar_type=dtype, sizes=list(sizes))
        tensor.dim_order = list(order if order is not None else range(len(sizes)))
        if dynamic:
            tensor.shape_dynamism = es.TensorShapeDynamism.DYNAMIC_BOUND
        if memory == "planned":
            offset = (self.plan.non_const_buffer_sizes[1] + 15) // 16 * 16
            nbytes = math.prod(sizes) * SIZES[dtype]
            self.plan.non_const_buffer_sizes[1] = offset + nbytes
            tensor.allocation_info = es.AllocationDetails(memory_id=1, memory_offset_low=offset)
        if data is not None:
            stored = self.mutable if memory == "planned" else self.constants
            stored.append(data)
            tensor.data_buffer_idx = len(stored)
        if name is not None:
            location = "EXTERNAL" if memory == "external" else "SEGMENT"
            tensor.extra_tensor_info = es.ExtraTensorInfo(
                fully_qualified_name=name, location=es.TensorDataLocation[location]
            )
        return self.value(tensor)

    def input(self, index: int) -> int:
        self.plan.inputs.append(index)
        return index

    def output(self, *indices: int) -> None:
        self.plan.outputs.extend(indices)

    def int(self, number: int) -> int:
        return self.value(es.Int(int_val=number))

    def bool(self, flag: bool) -> int:
        return self.value(es.Bool(bool_val=flag))

    def none(self) -> int:
        return self.value(es.Null())

    def instruction(self, member: object) -> int:
        self.chain.instructions.append(es.Instruction(instr_args=member))
        return len(self.chain.instructions) - 1

    def call(self, name: str, *args: int) -> int:
        base, _, overload = name.partition(".")
        found = [
            i
            for i, op in enumerate(self.plan.operators)
            if (op.name, op.overload) == (base, overload)
        ]
        if not found:
            self.plan.operators.append(es.Operator(name=base, overload=overload))
            found = [len(self.plan.operators) - 1]
        return self.instruction(es.KernelCall(op_index=found[0], args=list(args)))

    def add(self, a: int, b: int, out: int) -> int:
        return self.call("aten::add.out", a, b, self.int(1), out, out)

    def move(self, source: int, target: int) -> int:
        return self.instruction(es.MoveCall(move_from=source, move_to=target))

    def jump_false(self, condition: int, target: int) -> int:
        return self.instruction(
            es.JumpFalseCall(cond_value_index=condition, destination_instruction=target)
        )

    def free(self, index: int) -> int:
        return self.instruction(es.FreeCall(value_index=index))

    def constraints(
        self, names: Sequence[str], dims: Sequence[list[dict[str, object] | None]]
    ) -> None:
        rows = [{"name": n, "dims": d} for n, d in zip(names, dims, strict=True)]
        text = json.dumps({self.plan.name: {"inputs": rows}})
        self.named["etx/constraints"] = es.NamedBlob(text.encode())

    def pte(self, *others: Builder) -> es.PteFile:
        plans = [self.plan, *(other.plan for other in others)]
        return es.PteFile(
            es.Program(version=0, execution_plan=plans),
            constants=list(self.constants),
            mutable_data=list(self.mutable),
            delegates=list(self.delegates),
            named_data=dict(self.named),
        )

    def serialize(self, *others: Builder) -> bytes:
        return es.serialize_pte(self.pte(*others))


def addition(sizes: Sequence[int] = (2, 3), **options: object) -> bytes:
    """x + y."""
    b = Builder()
    x, y, out = (b.tensor(sizes, **options) for _ in range(3))
    b.input(x), b.input(y)
    b.add(x, y, out)
    b.output(out)
    return b.serialize()


def counter() -> bytes:
    """A buffer that starts at 5 and grows by the input at each call."""
    b = Builder()
    x = b.input(b.tensor((1,)))
    state = b.tensor((1,), data=b"\x00\x00\xa0\x40", name="count")
    out = b.tensor((1,))
    b.add(state, x, out)
    b.call("aten::copy_", state, out, b.bool(False), state)
    b.output(out)
    return b.serialize()


def left_open(name: str = "forward") -> Builder:
    """`counter` of two, without memory or initial value of its buffer."""
    b = Builder(name)
    x = b.input(b.tensor((2, 1)))
    state = b.tensor((2, 1), memory="caller", name="count")
    first = b.tensor((2, 1))
    b.add(state, x, first)
    b.call("aten::copy_", state, first, b.bool(False), state)
    b.output(first)
    return b


def waiting() -> Builder:
    """A method `wait` of one instruction that lasts until it is cancelled."""
    b = Builder("wait")
    out = b.int(0)
    b.call("etx_test::wait", out)
    b.output(out)
    return b


def drawing() -> Builder:
    """A method `draw` that returns 1000 times its seed and the number of its draw, twice."""
    b = Builder("draw")
    first, second = b.int(0), b.int(0)
    b.call("etx_test::draw", first)
    b.call("etx_test::draw", second)
    b.output(first, second)
    return b


def loop(bound: int, *others: Builder) -> bytes:
    """i = 0; while i < bound: i += 1."""
    b = Builder()
    i, done = b.int(0), b.bool(False)
    zero, one, limit, never = b.int(0), b.int(1), b.int(bound), b.bool(False)
    b.move(zero, i)
    b.call("executorch_prim::lt.Scalar", i, limit, done)
    b.jump_false(done, 5)
    b.call("executorch_prim::add.Scalar", i, one, i)
    b.jump_false(never, 1)
    b.output(i)
    return b.serialize(*others)
