# SPDX-License-Identifier: BSD-3-Clause
"""Writes add.pte, the sum of two vectors of up to eight floats: `python programs.py FOLDER`.

Written with only etx-schema, so that a device environment can make its own program.
"""

from __future__ import annotations

import sys
from pathlib import Path

from etx_schema import (
    AllocationDetails,
    Chain,
    EValue,
    ExecutionPlan,
    Instruction,
    Int,
    KernelCall,
    Operator,
    Program,
    PteFile,
    ScalarType,
    Tensor,
    TensorShapeDynamism,
    write_pte,
)


def vector(offset: int) -> EValue:
    return EValue(
        Tensor(
            scalar_type=ScalarType.FLOAT,
            sizes=[8],
            dim_order=[0],
            shape_dynamism=TensorShapeDynamism.DYNAMIC_BOUND,
            allocation_info=AllocationDetails(memory_id=1, memory_offset_low=offset),
        )
    )


def add() -> PteFile:
    plan = ExecutionPlan(
        name="forward",
        values=[vector(0), vector(32), vector(64), EValue(Int(int_val=1))],
        inputs=[0, 1],
        outputs=[2],
        chains=[
            Chain(
                inputs=[],
                outputs=[],
                instructions=[Instruction(KernelCall(op_index=0, args=[0, 1, 3, 2, 2]))],
            )
        ],
        operators=[Operator(name="aten::add", overload="out")],
        delegates=[],
        non_const_buffer_sizes=[0, 96],
    )
    return PteFile(Program(execution_plan=[plan]))


if __name__ == "__main__":
    write_pte(add(), Path(sys.argv[1]) / "add.pte")
