# SPDX-License-Identifier: BSD-3-Clause
"""A prepared graph run as it would be with some of its operators quantized."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node
from torch.utils import _pytree as pytree
from torchao.quantization.pt2e import FakeQuantizeBase, ObserverBase

from etx_quant.annotate import INNER, KEY, layer_of
from etx_quant.checks import Batch
from etx_quant.rows import ROWS, Moved, Recurrent, Split, Table, Weighted

__all__ = ["Simulation", "Unit", "observer_nodes"]


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

    def __init__(self, prepared: GraphModule) -> None:
        self.model = prepared
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

    def run(
        self, batch: Batch, active: Collection[Node], values: dict[Node, Tensor] | None = None
    ) -> list[Any]:
        """Return the outputs with the ``active`` observers as quantize and dequantize.

        ``values`` receives the result of each unit.
        """
        with torch.no_grad():
            run = _Run(self, set(active), values)
            outputs: list[Any] = run.run(*batch.leaves, enable_io_processing=False)
        return outputs

    def call(self, batch: Batch, active: Collection[Node]) -> Any:
        """Return what the model would, in its own structure."""
        spec: Any = self.model._out_spec
        return pytree.tree_unflatten(self.run(batch, active), spec)

    def observed(self, node: Node, x: Tensor) -> Tensor:
        """Return ``x`` as it is after quantize and dequantize."""
        source = node.args[0]
        assert isinstance(source, Node)
        if source.op != "get_attr":
            return fake_quantize(self.observers[node], x)
        if node not in self._constants:
            self._constants[node] = fake_quantize(self.observers[node], x)
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
