# SPDX-License-Identifier: BSD-3-Clause
"""Small programs built by hand; the golden files hold the same ones."""

from __future__ import annotations

import json
import struct

from etx_schema import (
    AllocationDetails,
    BackendDelegate,
    BackendDelegateDataReference,
    Bool,
    Chain,
    CompileSpec,
    DataLocation,
    DelegateCall,
    EValue,
    ExecutionPlan,
    Instruction,
    Int,
    IntList,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    NamedBlob,
    Operator,
    Program,
    PteFile,
    ScalarType,
    Tensor,
    TensorShapeDynamism,
)


def tensor(sizes=(2, 3), offset=None, data=0, **fields) -> EValue:
    place = None if offset is None else AllocationDetails(memory_id=1, memory_offset_low=offset)
    return EValue(
        Tensor(
            scalar_type=ScalarType.FLOAT,
            sizes=list(sizes),
            dim_order=list(range(len(sizes))),
            data_buffer_idx=data,
            allocation_info=place,
            **fields,
        )
    )


def plan(values, instructions, operators, inputs, outputs, arena, **fields) -> ExecutionPlan:
    return ExecutionPlan(
        name=fields.pop("name", "forward"),
        values=values,
        inputs=inputs,
        outputs=outputs,
        chains=[Chain(instructions=[Instruction(each) for each in instructions])],
        operators=[Operator(*name.rsplit(".", 1)) for name in operators],
        non_const_buffer_sizes=[0, arena],
        **fields,
    )


def add() -> PteFile:
    """x + y."""
    values = [tensor(offset=0), tensor(offset=32), tensor(offset=64), EValue(Int(1))]
    call = KernelCall(0, [0, 1, 3, 2, 2])
    return PteFile(
        Program(execution_plan=[plan(values, [call], ["aten::add.out"], [0, 1], [2], 96)])
    )


def counter() -> PteFile:
    """Add a constant to a state that starts at 1, 2, 3; then repeat once by a backward jump."""
    values = [
        tensor((3,), 0, data=1),
        tensor((3,), data=1),
        EValue(Int(1)),
        EValue(Bool(False)),
        EValue(Bool(True)),
        EValue(IntList([2, 2])),
    ]
    calls = [
        KernelCall(0, [0, 1, 2, 0, 0]),
        JumpFalseCall(cond_value_index=3, destination_instruction=3),
        JumpFalseCall(cond_value_index=3, destination_instruction=0),
        MoveCall(move_from=4, move_to=3),
    ]
    method = plan(values, calls, ["aten::add.out"], [], [0], 16)
    return PteFile(
        Program(execution_plan=[method]),
        constants=[struct.pack("<3f", 0.5, 0.25, 0.125)],
        mutable_data=[struct.pack("<3f", 1, 2, 3)],
        named_data={
            "etx/debug": NamedBlob(
                json.dumps(
                    {"forward": {"instructions": [{"module": "a.b", "source": "m.py:7"}]}}
                ).encode()
            )
        },
    )


def delegated() -> PteFile:
    """Two methods that share a blob, dynamic shapes, named data with its own alignment."""
    methods = []
    for name, blob in (("decode", 0), ("encode", 1)):
        values = [
            tensor((8, 4), 0, shape_dynamism=TensorShapeDynamism.DYNAMIC_BOUND),
            tensor((8, 4), 128, shape_dynamism=TensorShapeDynamism.DYNAMIC_BOUND),
        ]
        delegate = BackendDelegate(
            id="ToyBackend",
            processed=BackendDelegateDataReference(DataLocation.SEGMENT, blob),
            compile_specs=[CompileSpec("level", b"\x02")],
        )
        methods.append(plan(values, [DelegateCall(0, [0, 1])], [], [0], [1], 256, name=name))
        methods[-1].delegates.append(delegate)
    constraints = {"decode": {"inputs": [{"name": "x", "dims": [ROWS, None]}]}}
    return PteFile(
        Program(execution_plan=methods),
        delegates=[b"graph" * 7, b"graph" * 7],
        named_data={
            "weights": NamedBlob(bytes(range(64)), alignment=256),
            "same": NamedBlob(bytes(range(64))),
            "etx/constraints": NamedBlob(json.dumps(constraints).encode()),
        },
    )


ROWS = {"symbol": "s0", "min": 2, "max": 8, "divisor": 2}
PROGRAMS = {"add": add, "counter": counter, "delegated": delegated}
