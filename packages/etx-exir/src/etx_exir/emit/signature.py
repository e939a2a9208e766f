# SPDX-License-Identifier: BSD-3-Clause
"""Inputs, outputs and state of a method, from the signature of its exported program."""

from __future__ import annotations

from typing import Any

import torch
from etx_schema import ExtraTensorInfo, Tensor, TensorDataLocation
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    TensorArgument,
)
from torch.fx import Node

from etx_exir.config import ExecutorchBackendConfig
from etx_exir.emit import symbolic
from etx_exir.emit.arguments import encode
from etx_exir.emit.jumps import assign
from etx_exir.emit.method import MethodEmitter, Reference
from etx_exir.errors import EmitError, UnboundedError
from etx_exir.ir.mutable_state import MUTATION, state_names
from etx_exir.ir.write_origins import returning, writing
from etx_exir.plan.linear_ir import Kind, Storage

DEFAULT_TAG = "_default_external_constant"
DATA = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def bind_inputs(emitter: MethodEmitter, config: ExecutorchBackendConfig) -> None:
    """Add a value for every placeholder of the graph that something uses."""
    program = emitter.program
    placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
    specs = program.graph_signature.input_specs
    written = {s.target for s in program.graph_signature.output_specs if s.kind in MUTATION}
    shared = state_names(program) if emitter.options.share_mutable_buffers else frozenset()
    for node, spec in zip(placeholders, specs, strict=True):
        emitter.current = node
        if spec.kind in DATA and not node.users and spec.target not in written:
            continue
        while node not in emitter.environment:
            try:
                emitter.environment[node] = _input(
                    emitter, node, spec, spec.target in written | shared, config
                )
            except EmitError as error:
                emitter.note(error)
                if not isinstance(error, UnboundedError):
                    emitter.environment[node] = _stand_in(emitter, node, spec)


def _input(
    emitter: MethodEmitter,
    node: Node,
    spec: InputSpec,
    mutated: bool,
    config: ExecutorchBackendConfig,
) -> int:
    if spec.kind is InputKind.USER_INPUT:
        given, index = _user_input(emitter, node, spec)
        emitter.listing.inputs.append(given)
        return index
    if spec.kind in DATA:
        return _data(emitter, node, spec, mutated, config)
    raise EmitError(
        f"{emitter.where()}: {node.name} is an input of kind {spec.kind.name}, which has no form "
        "in the file; pass tensors, numbers or strings"
    )


def _stand_in(emitter: MethodEmitter, node: Node, spec: InputSpec) -> int:
    fake = node.meta.get("val")
    is_tensor = isinstance(fake, torch.Tensor)
    index = emitter.stand_in(fake) if is_tensor else emitter.values.null()  # type: ignore[arg-type]
    if spec.kind is InputKind.USER_INPUT:
        emitter.listing.inputs.append(index)
    return index


def _user_input(emitter: MethodEmitter, node: Node, spec: InputSpec) -> tuple[int, int]:
    """Add an input; return its value and the one that stands for it in the graph."""
    if isinstance(spec.arg, ConstantArgument):
        index = _own_value(emitter, spec.arg.value)
        return index, index
    fake = node.meta["val"]
    if not isinstance(fake, torch.Tensor):
        return symbolic.given(emitter, node)
    for dim, size in enumerate(fake.shape):
        if not isinstance(size, int) and size.node.expr.is_symbol:
            emitter.bounds.name_origin(size.node.expr, f"input {node.name!r}, dimension {dim}")
    planned = emitter.options.alloc_graph_input
    index = emitter.fresh(fake) if planned else emitter.tensor(fake, Storage(0, Kind.CALLER))
    return index, index


def _own_value(emitter: MethodEmitter, value: Any) -> int:
    """Add a constant that nothing else shares: the caller may set it."""
    shared = encode(emitter.values, emitter.lookup, value, None)
    member = emitter.values.items[shared].val
    return emitter.values.add(type(member)(**vars(member)))  # type: ignore[arg-type, misc]


def _data(
    emitter: MethodEmitter,
    node: Node,
    spec: InputSpec,
    mutated: bool,
    config: ExecutorchBackendConfig,
) -> int:
    target = str(spec.target)
    program = emitter.program
    source = program.state_dict if target in program.state_dict else program.constants
    if target not in source:
        raise EmitError(f"{emitter.where()}: the program holds no data for {target!r}")
    data = source[target]
    if not isinstance(data, torch.Tensor):
        raise EmitError(f"{emitter.where()}: {target!r} is a {type(data).__name__}, not a tensor")
    if mutated:
        return _state(emitter, data, target, config)
    tag = external_tag(config, node)
    if tag is not None:
        return _outside(emitter, data, target, tag)
    index = emitter.constant(data)
    number = emitter.listing.places[index].storage.data_buffer_idx
    emitter.constant_names.setdefault(number, target)
    return index


def external_tag(config: ExecutorchBackendConfig, node: Node) -> str | None:
    """Return the name of the file in which the constant at `node` is stored, None for inside."""
    chosen = config.external_constants
    if callable(chosen):
        return chosen(node)
    return DEFAULT_TAG if chosen else None


def _outside(emitter: MethodEmitter, data: torch.Tensor, target: str, tag: str) -> int:
    emitter.pools.put_outside(tag, target, data)
    index = emitter.tensor(data, Storage(data.nbytes, Kind.CALLER))
    _tensor(emitter, index).extra_tensor_info = ExtraTensorInfo(
        fully_qualified_name=target, location=TensorDataLocation.EXTERNAL
    )
    return index


def _state(
    emitter: MethodEmitter, data: torch.Tensor, target: str, config: ExecutorchBackendConfig
) -> int:
    if not emitter.options.alloc_mutable_buffers:
        index = emitter.tensor(data, Storage(data.nbytes, Kind.CALLER))
        _tensor(emitter, index).extra_tensor_info = ExtraTensorInfo(fully_qualified_name=target)
        return index
    index = emitter.tensor(data, Storage(data.nbytes, persistent=True, name=target))
    tensor = _tensor(emitter, index)
    if config.external_mutable_weights:
        emitter.pools.put_outside(DEFAULT_TAG, target, data)
        tensor.extra_tensor_info = ExtraTensorInfo(
            fully_qualified_name=target, location=TensorDataLocation.EXTERNAL
        )
    else:
        tensor.data_buffer_idx = emitter.pools.initial.add(data)
        if config.emit_mutable_buffer_names or emitter.options.share_mutable_buffers:
            tensor.extra_tensor_info = ExtraTensorInfo(fully_qualified_name=target)
    emitter.listing.state.append(index)
    return index


def _tensor(emitter: MethodEmitter, index: int) -> Tensor:
    tensor = emitter.values.items[index].val
    assert isinstance(tensor, Tensor)
    return tensor


def bind_outputs(emitter: MethodEmitter, results: list[Reference]) -> None:
    """Write state back and list the outputs of the method."""
    graph = emitter.program.graph
    nodes = {n.name: n for n in graph.nodes}
    targets = _placeholders(emitter)
    sources, written, outputs = [], [], []
    origins: list[Node | None] = []
    values: Any = graph.output_node().args[0]
    specs = emitter.program.graph_signature.output_specs
    for spec, result, value in zip(specs, results, values, strict=True):
        if spec.kind in MUTATION:
            placeholder = nodes[targets[str(spec.target)]]
            sources.append(result)
            written.append(emitter.lookup(placeholder))
            origins.append(writing(placeholder, value))
        else:
            outputs.append((result, value))
    overwritten = {id(emitter.listing.places[w].root()[0]) for w in written}
    for index, value in outputs:
        emitter.current = returning(value)
        emitter.listing.outputs.append(_output(emitter, index, overwritten))
    emitter.current = None
    assign(emitter, sources, written, origins)


def _placeholders(emitter: MethodEmitter) -> dict[str, str]:
    names = {}
    for spec in emitter.program.graph_signature.input_specs:
        if isinstance(spec.arg, TensorArgument):
            if spec.target is not None:
                names[spec.target] = spec.arg.name
            names.setdefault(spec.arg.name, spec.arg.name)
    return names


def _output(emitter: MethodEmitter, index: int, overwritten: set[int]) -> int:
    place = emitter.listing.places.get(index)
    if place is None:
        return index
    storage = place.root()[0]
    if id(storage) in overwritten:
        return emitter.clone(index)
    if emitter.options.alloc_graph_output:
        return index
    alone = sum(p.root()[0] is storage for p in emitter.listing.places.values()) == 1
    mine = alone and storage.kind is Kind.PLANNED and not storage.persistent
    if not mine or index in emitter.listing.inputs:
        index = emitter.clone(index)
        storage = emitter.listing.places[index].storage
    storage.kind = Kind.CALLER
    return index
