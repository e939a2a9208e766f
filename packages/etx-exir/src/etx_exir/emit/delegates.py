# SPDX-License-Identifier: BSD-3-Clause
"""Calls of delegates."""

from __future__ import annotations

from typing import Any

from etx_schema import (
    BackendDelegate,
    BackendDelegateDataReference,
    CompileSpec,
    DataLocation,
    DelegateCall,
    Instruction,
)
from torch.fx import GraphModule, Node

from etx_exir.emit.method import MethodEmitter, Reference


def lowered_module(module: GraphModule, node: Node) -> Any:
    """Return the lowered module that `node` calls, or None when it calls something else."""
    first = node.args[0] if node.args else None
    if not isinstance(first, Node) or first.op != "get_attr":
        return None
    value: Any = module
    for part in str(first.target).split("."):
        value = getattr(value, part)
    return value if hasattr(value, "backend_id") and hasattr(value, "processed_bytes") else None


def emit(emitter: MethodEmitter, module: GraphModule, node: Node) -> Reference:
    """Append the call and return its results."""
    lowered = lowered_module(module, node)
    inputs = [emitter.lookup(arg) for arg in node.args[1:] if isinstance(arg, Node)]
    fakes = node.meta["val"]
    many = isinstance(fakes, (list, tuple))
    outs = [emitter.fresh(fake) for fake in (fakes if many else [fakes])]
    index = _delegate(emitter, lowered)
    call = DelegateCall(delegate_index=index, args=[*inputs, *outs])
    emitter.step(Instruction(instr_args=call), f"delegate::{lowered.backend_id}", inputs, outs)
    return outs if many else outs[0]


def _delegate(emitter: MethodEmitter, lowered: Any) -> int:
    blob = emitter.pools.delegates.add(lowered.processed_bytes)
    specs = [CompileSpec(key=s.key, value=bytes(s.value)) for s in lowered.compile_specs]
    emitter.delegates.append(
        BackendDelegate(
            id=lowered.backend_id,
            processed=BackendDelegateDataReference(location=DataLocation.SEGMENT, index=blob),
            compile_specs=specs,
        )
    )
    emitter.lowered.append(lowered)
    return len(emitter.delegates) - 1
