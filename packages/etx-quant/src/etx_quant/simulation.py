# SPDX-License-Identifier: BSD-3-Clause
"""A prepared graph run as it would be with some of its operators quantized."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node
from torch.fx._pytree import tree_flatten_spec
from torch.utils import _pytree as pytree
from torchao.quantization.pt2e import FakeQuantizeBase, ObserverBase

from etx_quant.annotate import INNER, KEY, layer_of
from etx_quant.checks import Batch
from etx_quant.rows import ROWS, Moved, Recurrent, Split, Table, Weighted

__all__ = ["Simulation", "Stream", "Unit", "observer_nodes"]


@dataclass(frozen=True)
class Unit:
    """An operator that is quantized or not: its node, the last that it takes in, its layer."""

    name: str
    node: Node
    last: Node

    @property
    def operator(self) -> str:
        """Return the operator's name without namespace and overload."""
        return str(self.node.target).split(".")[1].rstrip("_")


class Simulation:
    """Runs a prepared and calibrated graph in float, with chosen units as if quantized."""

    def __init__(self, prepared: GraphModule, state: Mapping[str, Tensor]) -> None:
        self.model, self.state = prepared, state
        self.observers = observer_nodes(prepared)
        self.units = list(_units(prepared))
        self._producers = {node: self._sources(node) for node in self.observers}
        self._consumers = {node: self._readers(node) for node in self.observers}
        self._constants: dict[Node, Tensor] = {}

    def active(self, quantized: Collection[Unit]) -> set[Node]:
        """Return the observers that stay where only these units are quantized."""
        nodes = {unit.node for unit in quantized}
        return {
            node
            for node in self.observers
            if (self._producers[node] | self._consumers[node]) & nodes
        }

    def stream(self, active: Collection[Node]) -> Stream:
        """Return the model, before its first call, with ``active`` observers that quantize."""
        return Stream(self, active)

    def leaves(self, batch: Batch) -> list[Any]:
        """Return the arguments in the order of the graph, in whichever the call gives them."""
        spec: Any = self.model._in_spec
        bound = inspect.signature(self.model.forward).bind(*batch.args, **batch.kwargs)
        values = list(bound.arguments.values())
        first, named = spec.children()
        count = first.num_children
        args, kwargs = values[:count], dict(zip(named.context, values[count:], strict=True))
        found: list[Any] = tree_flatten_spec((args, kwargs), spec)
        return found

    def observed(self, node: Node, x: Tensor) -> Tensor:
        """Return ``x`` as it is after quantize and dequantize."""
        source = node.args[0]
        assert isinstance(source, Node)
        if source.op != "get_attr" or source.target in self.state:
            return fake_quantize(self.observers[node], x).to(x.dtype)
        if node not in self._constants:
            self._constants[node] = fake_quantize(self.observers[node], x).to(x.dtype)
        return self._constants[node]

    def _sources(self, node: Node) -> set[Node]:
        """Return the units that make the value of an observer, behind what only moves it."""
        found: set[Node] = set()
        if not _has_parameters(self.observers[node]):
            return found
        pending = list(node.all_input_nodes)
        last = {u.last: u.node for u in self.units if u.last.meta[KEY].output_qspec is not None}
        while pending:
            source = pending.pop()
            if source in last:
                found.add(last[source])
            elif source in self.observers or _moves(source):
                pending += source.all_input_nodes
        return found

    def _readers(self, node: Node) -> set[Node]:
        """Return the units that read the value of an observer, behind what only moves it."""
        found: set[Node] = set()
        pending = list(node.users)
        units = {unit.node for unit in self.units}
        while pending:
            reader = pending.pop()
            if reader in units:
                found.add(reader)
            elif reader in self.observers or _moves(reader) or reader.meta.get(INNER):
                pending += reader.users
        return found


class Stream:
    """Calls of one model, in turn: what they write into buffers is their own."""

    def __init__(self, simulation: Simulation, active: Collection[Node]) -> None:
        self.simulation, self.active = simulation, set(active)
        self.state = {name: value.clone() for name, value in simulation.state.items()}

    def run(self, batch: Batch, values: dict[Node, Tensor] | None = None) -> list[Any]:
        """Return the outputs; ``values`` receives the result of each unit."""
        model = self.simulation.model
        held = {name: model.get_buffer(name) for name in self.state}
        with torch.no_grad():
            for name, buffer in held.items():
                buffer.copy_(self.state[name])
            run = _Run(self.simulation, self.active, values)
            outputs: list[Any] = run.run(*self.simulation.leaves(batch), enable_io_processing=False)
            for name, buffer in held.items():
                self.state[name].copy_(buffer)
            if held:
                outputs = [x.clone() if isinstance(x, Tensor) else x for x in outputs]
        return outputs

    def results(self, batches: Iterable[Batch]) -> list[list[Any]]:
        """Return the outputs of each of these calls."""
        return [self.run(batch) for batch in batches]

    def call(self, batch: Batch) -> Any:
        """Return what the model would, in its own structure."""
        spec: Any = self.simulation.model._out_spec
        return pytree.tree_unflatten(self.run(batch), spec)


class _Run(Interpreter):
    def __init__(
        self, simulation: Simulation, active: set[Node], values: dict[Node, Tensor] | None
    ) -> None:
        super().__init__(simulation.model)
        self.simulation, self.active, self.values = simulation, active, values
        self.last = {unit.last for unit in simulation.units}

    def run_node(self, n: Node) -> Any:
        if n in self.simulation.observers:
            source: Any = n.args[0]
            x = self.env[source]
            result = self.simulation.observed(n, x) if n in self.active else x
            if self.values is not None and source in self.last:
                self.values[source] = result
            return result
        result = super().run_node(n)
        if self.values is not None and n in self.last:
            self.values[n] = result[0] if isinstance(result, tuple) else result
        return result


def observer_nodes(model: GraphModule) -> dict[Node, Any]:
    """Return the nodes of a prepared graph that call an observer, with the observer."""
    calls = [node for node in model.graph.nodes if node.op == "call_module"]
    modules = {node: model.get_submodule(str(node.target)) for node in calls}
    kinds = (ObserverBase, FakeQuantizeBase)
    return {node: module for node, module in modules.items() if isinstance(module, kinds)}


def fake_quantize(observer: Any, x: Tensor) -> Tensor:
    """Return ``x`` quantized and dequantized with what ``observer`` has seen."""
    if hasattr(observer, "fake_quantize"):
        own: Tensor = observer.fake_quantize(x)
        return own
    quantized = torch.ops.quantized_decomposed
    bounds = (observer.quant_min, observer.quant_max, observer.dtype)
    if observer.is_dynamic:
        scale, zero = quantized.choose_qparams.tensor(x, *bounds[:2], observer.eps, bounds[2])
        values = quantized.quantize_per_tensor.tensor(x, scale, zero, *bounds)
        dynamic: Tensor = quantized.dequantize_per_tensor.tensor(values, scale, zero, *bounds)
        return dynamic
    if observer.qscheme in (torch.per_channel_symmetric, torch.per_channel_affine):
        observer(x)
        scale, zero = observer.calculate_qparams()
        values = quantized.quantize_per_channel(x, scale, zero, observer.ch_axis, *bounds)
        result: Tensor = quantized.dequantize_per_channel(
            values, scale, zero, observer.ch_axis, *bounds
        )
        return result
    scale, zero = observer.calculate_qparams()
    values = quantized.quantize_per_tensor(x, float(scale), int(zero), *bounds)
    whole: Tensor = quantized.dequantize_per_tensor(values, float(scale), int(zero), *bounds)
    return whole


def _moves(node: Node) -> bool:
    return isinstance(ROWS.get(node.target), (Moved, Split)) or "getitem" in node.name


def _has_parameters(observer: Any) -> bool:
    """Tell whether a result can be quantized before something reads it."""
    return not observer.is_dynamic


def _units(model: GraphModule) -> Iterator[Unit]:
    names: set[str] = set()
    for node in model.graph.nodes:
        row, found = ROWS.get(node.target), node.meta.get(KEY)
        if found is None or isinstance(row, (Moved, Split)):
            continue
        if row is None and INNER not in node.meta:
            continue
        if node.meta.get(INNER, not found.input_qspec_map):
            continue
        name = layer_of(node)
        if not isinstance(row, (Weighted, Recurrent, Table)) or name in names:
            name = f"{name}:{node.name}" if name != node.name else name
        names.add(name)
        yield Unit(name, node, _last(node))


def _last(node: Node) -> Node:
    """Return the last of what an operator takes in: the first annotated with a result."""
    while node.meta[KEY].output_qspec is None:
        following = [user for user in node.users if KEY in user.meta]
        if len(node.users) != 1 or not following or following[0].meta[KEY].input_qspec_map:
            break
        node = following[0]
    return node
