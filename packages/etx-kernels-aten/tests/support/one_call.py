# SPDX-License-Identifier: BSD-3-Clause
"""Programs of one instruction, for calls of operators that eager makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from etx_exir.emit.arguments import encode
from etx_exir.emit.values import Values
from etx_exir.ir.layout import SCALAR_TYPES
from etx_exir.ir.ops import COPY_OF
from etx_exir.ir.out_variants import OutVariant, out_variant
from etx_schema import (
    AllocationDetails,
    Chain,
    ExecutionPlan,
    Instruction,
    KernelCall,
    Operator,
    Program,
    PteFile,
    ScalarType,
    Tensor,
    serialize_pte,
)
from torch._ops import OpOverload
from torch.fx import Graph, Node
from torch.utils._pytree import tree_map

ALIGNMENT = 64


class Arena:
    """Planned tensors one after another."""

    def __init__(self) -> None:
        self.values = Values()
        self.size = 0

    def tensor(self, like: torch.Tensor) -> int:
        """Add a contiguous tensor and return its index."""
        index = self.values.add(
            Tensor(
                scalar_type=ScalarType(SCALAR_TYPES[like.dtype]),
                sizes=list(like.shape),
                dim_order=list(range(like.dim())),
                allocation_info=AllocationDetails(memory_id=1, memory_offset_low=self.size),
            )
        )
        self.size += -(-like.nbytes // ALIGNMENT) * ALIGNMENT
        return index


def variant_of(op: OpOverload) -> OutVariant | None:
    """Return the out variant of an operator, of a view that of its copy."""
    return out_variant(COPY_OF.get(op, op))


def program_of(
    op: OpOverload, args: Sequence[Any], kwargs: dict[str, Any], results: Sequence[torch.Tensor]
) -> tuple[bytes, list[torch.Tensor]]:
    """Return a program that calls the out variant of `op`, and its inputs."""
    variant = variant_of(op)
    assert variant is not None
    arena, graph, inputs = Arena(), Graph(), []
    indices: dict[Node, int] = {}

    def node(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        made = graph.placeholder(f"x{len(inputs)}")
        made.meta["val"] = value
        indices[made] = arena.tensor(value)
        inputs.append(value)
        return made

    given = dict(zip((a.name for a in op._schema.arguments), args, strict=False)) | kwargs
    encoded = [
        encode(
            arena.values,
            indices.__getitem__,
            tree_map(node, given.get(a.name, a.default)),
            a.type,
        )
        for a in variant.arguments
    ]
    outs = [arena.tensor(result) for result in results]
    if variant.out_list:
        encoded += [arena.values.tensor_list(outs)] * 2
    else:
        last = outs[0] if len(outs) == 1 else arena.values.tensor_list(outs)
        encoded += [*outs, last]
    call = Instruction(KernelCall(op_index=0, args=encoded))
    plan = ExecutionPlan(
        name="forward",
        values=arena.values.items,
        inputs=list(indices.values()),
        outputs=outs,
        chains=[Chain(inputs=[], outputs=[], instructions=[call])],
        operators=[Operator(name=variant.name, overload=variant.overload)],
        delegates=[],
        non_const_buffer_sizes=[0, max(arena.size, ALIGNMENT)],
    )
    return serialize_pte(PteFile(Program(execution_plan=[plan]))), inputs
