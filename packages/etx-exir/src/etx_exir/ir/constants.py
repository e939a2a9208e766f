# SPDX-License-Identifier: BSD-3-Clause
"""The constants of a program: which placeholders hold one, and adding and removing them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Graph, Node

from etx_exir.ir.control_flow_graphs import Captures, captures, graph_modules
from etx_exir.ir.mutable_state import SHARED, state_names

__all__ = ["Constants", "fake_mode_of"]

_KINDS = frozenset({InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR})


def fake_mode_of(program: ExportedProgram) -> FakeTensorMode:
    """Return the fake tensor mode under which `program` was traced."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch._subclasses.FakeTensor):
            return value.fake_mode
    return FakeTensorMode()


class Constants:
    """The tensors of `program` that never change: parameters, unmutated buffers, constants.

    Branches and bodies of loops hold those that they capture. `graph` is the one in which added
    constants are to be read; the program's own by default.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self.graph: Graph = program.graph
        signature = program.graph_signature
        mutated = state_names(program)
        self._specs: dict[str, InputSpec] = {
            spec.arg.name: spec
            for spec in signature.input_specs
            if spec.kind in _KINDS and spec.target not in mutated
        }

    def get(self, node: object) -> Tensor | None:
        """Return the tensor that `node` holds, or None when it is not a constant."""
        spec = self._spec(node)
        if spec is None:
            return None
        stored: Tensor | None = self._stored(spec)
        return stored

    def _spec(self, node: object) -> InputSpec | None:
        if not isinstance(node, Node) or node.op != "placeholder":
            return None
        root = self._root(node)
        return None if root is None else self._specs.get(root.name)

    def is_parameter(self, node: object) -> bool:
        """Tell whether `node` holds a parameter, for which another value may be loaded."""
        spec = self._spec(node)
        return spec is not None and spec.kind is InputKind.PARAMETER

    def is_weight(self, node: object) -> bool:
        """Tell whether `node` holds a parameter or a buffer that is saved with the parameters."""
        spec = self._spec(node)
        saved = spec is not None and spec.kind is InputKind.BUFFER and spec.persistent is not False
        return saved or self.is_parameter(node)

    def is_shared(self, node: Node) -> bool:
        """Tell whether another method of the file holds what `node` holds."""
        tensor = self.get(node)
        shared = self.program.graph_module.meta.get(SHARED, ())
        return tensor is not None and tensor.data_ptr() in shared

    def readers(self, node: Node) -> list[Node]:
        """Return what reads the tensor that `node` holds, in graphs that capture it too."""
        tensor = self.get(node)
        holders = [node] if tensor is None else self._holders.get(tensor.data_ptr(), [node])
        return [
            user for holder in holders for user in holder.users if not self._hands_on(user, holder)
        ]

    @cached_property
    def _holders(self) -> dict[int, list[Node]]:
        """By address, the placeholders of every graph that hold the constant there."""
        found: dict[int, list[Node]] = {}
        for module in graph_modules(self.program.graph_module):
            for node in module.graph.find_nodes(op="placeholder"):
                tensor = self.get(node)
                if tensor is not None and tensor.numel():
                    found.setdefault(tensor.data_ptr(), []).append(node)
        return found

    def _hands_on(self, user: Node, holder: Node) -> bool:
        """Tell whether `user` only captures `holder` for the graphs that it runs."""
        owners = (owner for owner in self._owners.values() if owner.node is user)
        owner = next(owners, None)
        if owner is None:
            return False
        return user.all_input_nodes.count(holder) <= owner.operands.count(holder)

    def reaches(self, graph: Graph) -> bool:
        """Tell whether constants can be added to `graph`."""
        return graph is self.program.graph or (
            graph in self._owners and self.reaches(self._owners[graph].node.graph)
        )

    @cached_property
    def _owners(self) -> dict[Graph, Captures]:
        """By graph of a branch or body, what the only operator that uses it hands to it."""
        found = captures(self.program.graph_module)
        return {module.graph: item for item in found for module in item.modules}

    def _root(self, node: Node) -> Node | None:
        """Return the placeholder of the program that `node`, one of a nested graph, stands for."""
        while node.graph is not self.program.graph:
            owner = self._owners.get(node.graph)
            if owner is None:
                return None
            index = node.graph.find_nodes(op="placeholder").index(node) - owner.first
            operand = owner.operands[index] if index >= 0 else None
            if not isinstance(operand, Node) or operand.op != "placeholder":
                return None
            node = operand
        return node

    def _stored(self, spec: InputSpec) -> Any:
        name = spec.target or ""
        if spec.kind is InputKind.CONSTANT_TENSOR or spec.persistent is False:
            return self.program.constants.get(name)
        found = self.program.state_dict.get(name)
        return self.program.constants.get(name) if found is None else found

    def origin(self, node: Node) -> Node:
        """Return the program's own placeholder that `node`, one that holds a constant, is for."""
        found = self._root(node)
        assert found is not None
        return found

    def items(self) -> Iterator[tuple[Node, Tensor]]:
        """Yield the placeholders of all constants with their tensors, in order."""
        for node in self.program.graph.find_nodes(op="placeholder"):
            tensor = self.get(node)
            if tensor is not None:
                yield node, tensor

    def name(self, node: Node) -> str:
        """Return the name under which the constant at `node` is stored."""
        root = self.origin(node)
        return self._specs[root.name].target or root.name

    def add(self, tensor: Tensor, name: str, fake_mode: FakeTensorMode | None = None) -> Node:
        """Store `tensor` under a fresh name close to `name`; return its placeholder in `graph`."""
        program = self.program
        value = tensor.detach()
        target = self._fresh(name)
        nodes = program.graph.find_nodes(op="placeholder")
        specs = program.graph_signature.input_specs
        index = next((i for i, s in enumerate(specs) if s.kind is InputKind.USER_INPUT), len(specs))
        first = (
            nodes[index]
            if index < len(nodes)
            else next(node for node in program.graph.nodes if node.op != "placeholder")
        )
        with program.graph.inserting_before(first):
            node: Node = program.graph.placeholder("c_" + re.sub(r"\W", "_", target))
        node.target = node.name
        mode = fake_mode or fake_mode_of(program)
        node.meta["val"] = mode.from_tensor(value, static_shapes=True)
        spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(name=node.name), target)
        specs.insert(index, spec)
        program.constants[target] = value
        self._specs[node.name] = spec
        return self._captured(node, self.graph)

    def _captured(self, node: Node, graph: Graph) -> Node:
        """Return what stands for the program's placeholder `node` in `graph`."""
        if graph is self.program.graph:
            return node
        owner = self._owners[graph]
        added = owner.add(self._captured(node, owner.node.graph))
        return next(placeholder for placeholder in added if placeholder.graph is graph)

    def duplicate(self, node: Node) -> Node:
        """Return a new placeholder of the tensor that `node` holds, under the same name."""
        spec = self._specs[node.name]
        with self.program.graph.inserting_after(node):
            copy: Node = self.program.graph.placeholder(node.name)
        copy.target, copy.meta = copy.name, dict(node.meta)
        specs = self.program.graph_signature.input_specs
        added = InputSpec(spec.kind, TensorArgument(name=copy.name), spec.target, spec.persistent)
        specs.insert(specs.index(spec) + 1, added)
        self._specs[copy.name] = added
        return copy

    def replace(self, node: Node, tensor: Tensor, fake_mode: FakeTensorMode) -> None:
        """Store `tensor` in place of what `node` holds, only for this placeholder."""
        spec = self._specs[node.name]
        target = self._fresh(spec.target or node.name)
        spec.kind, spec.target, spec.persistent = InputKind.CONSTANT_TENSOR, target, None
        self.program.constants[target] = tensor
        node.meta["val"] = fake_mode.from_tensor(tensor, static_shapes=True)

    def _fresh(self, name: str) -> str:
        taken = self.program.constants.keys() | self.program.state_dict.keys()
        candidate, count = name, 0
        while candidate in taken:
            count += 1
            candidate = f"{name}_{count}"
        return candidate

    def remove(self, node: Node) -> None:
        """Drop the unused placeholder `node`; forget its tensor when no other one holds it."""
        spec = self._specs.pop(node.name)
        program = self.program
        program.graph.erase_node(node)
        program.graph_signature.input_specs.remove(spec)
        target = spec.target or ""
        if not any(s.target == target for s in program.graph_signature.input_specs):
            program.constants.pop(target, None)
            program.state_dict.pop(target, None)
