# SPDX-License-Identifier: BSD-3-Clause
"""What ExecuTorch's tests call in another form than ETX offers it; each is a few lines over ETX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import etx_exir
import etx_runtime
import numpy as np
import torch
from etx_exir.emit import emit_all
from etx_schema import (
    AllocationDetails,
    BackendDelegateDataReference,
    BackendDelegateInlineData,
    Buffer,
    DataLocation,
    DelegateCall,
    ExecutionPlan,
    FreeCall,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    Program,
    PteFile,
)
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.utils import _pytree as pytree

KernelTypes = (KernelCall, DelegateCall, MoveCall, JumpFalseCall, FreeCall)
AllocationDetails.memory_offset = property(  # type: ignore[attr-defined]
    lambda self: self.memory_offset_high << 32 | self.memory_offset_low
)


@dataclass
class EmitterOutput:
    """A program with its blobs inside its tables, and what belongs to it."""

    program: Program
    debug_handle_map: Any = None
    method_to_delegate_debug_id_map: Any = None
    mutable_data: list[Buffer] | None = None
    external_constant_buffer: Any = ()
    external_constant_map: Any = None


def with_blobs(pte: PteFile) -> Program:
    """Put the blobs that ETX keeps beside the tables into them."""
    inline = list(pte.program.backend_delegate_data)
    first = len(inline)
    inline += [BackendDelegateInlineData(bytes(blob)) for blob in pte.delegates]
    return replace(
        pte.program,
        execution_plan=[_inlined(plan, first) for plan in pte.program.execution_plan],
        constant_buffer=[Buffer(b""), *(Buffer(bytes(blob)) for blob in pte.constants)],
        backend_delegate_data=inline,
    )


def _inlined(plan: ExecutionPlan, first: int) -> ExecutionPlan:
    chains: Any = [
        replace(chain, stacktrace=chain.stacktrace or None)  # type: ignore[arg-type]
        for chain in plan.chains
    ]
    delegates = []
    for each in plan.delegates:
        place = each.processed
        if place is not None and place.location == DataLocation.SEGMENT:
            place = BackendDelegateDataReference(DataLocation.INLINE, first + place.index)
        delegates.append(replace(each, processed=place))
    return replace(plan, chains=chains, delegates=delegates)


def _emitter_output(manager: etx_exir.ExecutorchProgramManager) -> EmitterOutput:
    external: list[bytes] = []
    places: dict[str, dict[str, int]] = {}
    for tag, ptd in manager._emitted.external.items():
        for name, blob in ptd.named_data.items():
            data = bytes(blob.data)
            if data not in external:
                external.append(data)
            places.setdefault(tag, {})[name] = external.index(data)
    pte = manager.pte_file
    return EmitterOutput(
        with_blobs(pte),
        manager.debug_handle_map,
        manager.delegate_map,
        [Buffer(b""), *(Buffer(bytes(blob)) for blob in pte.mutable_data)],
        external,
        places,
    )


def _to_executorch(manager: Any, config: Any = None) -> Any:
    return _lower(manager, config or executorch_backend_config())


_lower = etx_exir.EdgeProgramManager.to_executorch
Edge: Any = etx_exir.EdgeProgramManager
Edge.to_executorch = _to_executorch
Edge._edge_programs = property(lambda manager: manager._programs)
Manager: Any = etx_exir.ExecutorchProgramManager
Manager._emitter_output = property(_emitter_output)
Manager.executorch_program = property(lambda manager: with_blobs(manager.pte_file))


def emit_program(
    methods: Any, emit_stacktrace: bool = False, constant_methods: Any = None
) -> EmitterOutput:
    """Emit one program, or several by method name."""
    programs = methods if isinstance(methods, dict) else {"forward": methods}
    config = etx_exir.ExecutorchBackendConfig(emit_stacktrace=emit_stacktrace)
    return EmitterOutput(with_blobs(emit_all(programs, config, constant_methods).pte))


def generate_pattern_op_partitions(module: GraphModule, op_support: Any) -> list[Any]:
    """Partition by what is supported node by node, with torch's own partitioner."""
    return list(
        CapabilityBasedPartitioner(
            module, op_support, allows_single_node_partition=True
        ).propose_partitions()
    )


class _Ops:
    """The Edge dialect of ETX uses torch's operators themselves."""

    edge = torch.ops
    backend = torch.ops


ops = _Ops()


def bind(*_: Any) -> Any:
    """Bind no pattern: ETX has none for operators."""
    return lambda function: function


def edge_compile_config(*args: Any, **options: Any) -> etx_exir.EdgeCompileConfig:
    """Dim orders are always stored; operators stay torch's own."""
    for name in ("_skip_dim_order", "_use_edge_ops"):
        options.pop(name, None)
    return etx_exir.EdgeCompileConfig(*args, **options)


class ConstraintBasedSymShapeEvalPass:
    """Bounds always come from the constraints of the exported program."""


class InitializedMutableBufferPass:
    """Initial values are always kept."""

    def __init__(self, *_: Any) -> None: ...

    def __call__(self, module: GraphModule) -> GraphModule:
        return module


def executorch_backend_config(*args: Any, **options: Any) -> etx_exir.ExecutorchBackendConfig:
    """Nothing is checked against a target: many of these programs have made-up operators."""
    if isinstance(options.get("sym_shape_eval_pass"), ConstraintBasedSymShapeEvalPass):
        del options["sym_shape_eval_pass"]
    return etx_exir.ExecutorchBackendConfig(*args, **{"target": None, **options})


def ignore(*_: Any, **__: Any) -> None:
    """Print nothing."""


@dataclass
class MethodProgramsPartitionerSpec:
    """Programs and partitioners by method name."""

    method_to_edge_program: dict[str, Any]
    method_to_partitioner: Any


def to_backend(first: Any, *rest: Any) -> Any:
    """Lower as ETX does; programs of several methods come with their partitioners."""
    if isinstance(first, MethodProgramsPartitionerSpec):
        rest = (first.method_to_partitioner,)
        first = first.method_to_edge_program
    return etx_exir.to_backend(first, *rest)


def get_control_flow_submodules(module: GraphModule) -> list[tuple[str, GraphModule, Node]]:
    """List the graphs that calls of this graph run, with the call."""
    return [
        (str(node.target), child, next(iter(node.users)))
        for node in module.graph.find_nodes(op="get_attr")
        if isinstance(child := getattr(module, str(node.target), None), GraphModule)
    ]


def get_lowered_submodules(module: GraphModule) -> list[tuple[str, Any, Node]]:
    """List the delegates of this graph, with the node that holds each."""
    kind = etx_exir.LoweredBackendModule
    return [
        (str(node.target), child, node)
        for node in module.graph.find_nodes(op="get_attr")
        if isinstance(child := getattr(module, str(node.target), None), kind)
    ]


def get_lowered_backend_modules(module: GraphModule) -> list[Any]:
    """List the delegates of this graph."""
    return [lowered for _, lowered, _ in get_lowered_submodules(module)]


def get_delegates(graph: torch.fx.Graph) -> list[Node]:
    """List the nodes that hold a delegate."""
    return [node for node in graph.nodes if node.op == "get_attr" and "lowered" in node.name]


def get_non_lowered_nodes(graph: torch.fx.Graph) -> list[Node]:
    """List the calls that no delegate runs."""
    calls = (node for node in graph.nodes if node.op == "call_function")
    delegates = set(graph.find_nodes(op="call_function", target=etx_exir.executorch_call_delegate))
    return [n for n in calls if n not in delegates and not set(n.all_input_nodes) & delegates]


class _Module:
    """A program on ETX's runtime, with torch tensors in and out."""

    def __init__(self, buffer: bytes) -> None:
        self.program = etx_runtime.Runtime.get().load_program(buffer)
        self.methods: dict[str, etx_runtime.Method] = {}

    def run_method(self, name: str, inputs: Any = ()) -> list[Any]:
        """Run a method on flat or nested inputs."""
        if name not in self.methods:
            self.methods[name] = self.program.load_method(name)
        return list(_tensors(self.methods[name].execute(pytree.tree_leaves(inputs))))

    def forward(self, inputs: Any = ()) -> list[Any]:
        """Run `forward`."""
        return self.run_method("forward", inputs)

    def __getitem__(self, name: str) -> Any:
        return lambda inputs=(): self.run_method(name, inputs)

    __call__ = forward


def _tensors(outputs: list[Any]) -> Iterator[Any]:
    for value in outputs:
        yield torch.from_numpy(np.asarray(value)) if hasattr(value, "shape") else value


def load_for_executorch_from_buffer(buffer: Any, *_: Any) -> _Module:
    """Load a program from bytes."""
    return _Module(bytes(buffer))


class Runtime:
    """ETX's runtime, with torch tensors in and out."""

    @classmethod
    def get(cls) -> Runtime:
        """Return it."""
        return cls()

    def load_program(self, buffer: Any) -> _Program:
        """Load a program from bytes."""
        return _Program(bytes(buffer))


class _Program:
    def __init__(self, buffer: bytes) -> None:
        self.module = _Module(buffer)

    def load_method(self, name: str) -> _Method:
        """Load a method."""
        return _Method(self.module, name)


class _Method:
    def __init__(self, module: _Module, name: str) -> None:
        self.module, self.name = module, name

    def execute(self, inputs: Any = ()) -> list[Any]:
        """Run it."""
        return self.module.run_method(self.name, inputs)
