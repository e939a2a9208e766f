# SPDX-License-Identifier: BSD-3-Clause
"""The driver that every pass shares."""

from __future__ import annotations

import dataclasses
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch._dispatch.python import enable_python_dispatcher
from torch._prims_common import is_contiguous_or_false
from torch._subclasses import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree

from etx_exir.errors import LoweringError, where
from etx_exir.ir.constants import Constants, fake_mode_of
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.equal_values import inherit
from etx_exir.ir.ops import VIEW_OF
from etx_exir.ir.provenance import DECLINED
from etx_exir.ir.stand_in import put_in_place

__all__ = [
    "NodePass",
    "Pass",
    "contiguous",
    "name_outputs",
    "propagate",
    "recompile",
]


class Pass(ABC):
    """Change a program in place; return truly whether anything changed.

    `lowers` are the operators it takes apart: where one is to be kept whole, it is not run.
    `makes` are those it puts together: where a target lacks one, it is not run.
    """

    lowers: ClassVar[frozenset[Any]] = frozenset()
    makes: ClassVar[frozenset[Any]] = frozenset()

    @property
    def name(self) -> str:
        """The name under which dumps show the pass."""
        return type(self).__module__.rsplit(".", 1)[-1]

    @classmethod
    def equation(cls) -> str:
        """Return the first paragraph of the pass's file, on one line."""
        text = sys.modules[cls.__module__].__doc__ or ""
        return " ".join(text.split("\n\n")[0].split())

    def run(self, program: ExportedProgram) -> bool:
        """Apply the pass to `program` and all graphs nested in it, and keep its signature."""
        changed = self.change(program)
        if changed:
            recompile(program)
        return changed

    def change(self, program: ExportedProgram) -> bool:
        """Do as `run`, but leave it to the caller to `recompile` after the last of its passes."""
        changed = self.apply(program)
        if changed:
            name_outputs(program)
        return changed

    def change_all(self, programs: Sequence[ExportedProgram]) -> list[bool]:
        """Do as `change` for the methods of one file; return which of them changed."""
        return [self.change(program) for program in programs]

    @abstractmethod
    def apply(self, program: ExportedProgram) -> bool:
        """Change `program`; return truly whether anything changed."""


def _erase(before: Node, node: Node) -> None:
    """Take away what was added between two nodes."""
    while node.prev is not before:
        node.graph.erase_node(node.prev)


def recompile(program: ExportedProgram) -> None:
    """Write the code of all graphs again: until then modules compute what they did before."""
    for module in graph_modules(program.graph_module):
        module.recompile()


def name_outputs(program: ExportedProgram) -> None:
    """Let the signature name the nodes that the program returns now."""
    outputs: Any = program.graph.output_node().args[0]
    for spec, node in zip(program.graph_signature.output_specs, outputs, strict=True):
        if isinstance(node, Node) and not isinstance(spec.arg, ConstantArgument):
            spec.arg = dataclasses.replace(spec.arg, name=node.name)


def propagate(node: Node, mode: FakeTensorMode) -> None:
    """Compute `meta["val"]` of one call from those of its arguments.

    By the dispatcher that knows symbols: without it an operator may take the size of the example.
    """
    args, kwargs = map_arg((node.args, node.kwargs), lambda arg: arg.meta["val"])
    target: Any = node.target
    view = VIEW_OF.get(target)
    with mode, enable_python_dispatcher():
        if view is None:
            node.meta["val"] = target(*args, **kwargs)
        else:
            result = view(*args, **kwargs)
            node.meta["val"] = pytree.tree_map_only(Tensor, contiguous, result)


def contiguous(value: Tensor) -> Tensor:
    """Return a contiguous value of the same shape; call it under the fake mode."""
    if is_contiguous_or_false(value):
        return value
    return torch.empty(value.shape, dtype=value.dtype, device=value.device)


class NodePass(Pass):
    """Rewrite the nodes that call one of `targets`, or that `calls` yields, one at a time.

    `rewrite` returns what takes the place of its argument: a node, or for an operator with several
    results a tuple of nodes. To leave the node it returns None, or where little is lacking, what
    that is: `--explain` tells it. New nodes inherit the old one's `meta`; only intermediate ones
    have their value computed. With `repeats` the nodes are visited until none is rewritten any
    more.
    """

    targets: ClassVar[tuple[Any, ...]] = ()
    repeats: ClassVar[bool] = False
    program: ExportedProgram
    constants: Constants
    mode: FakeTensorMode

    @abstractmethod
    def rewrite(self, node: Node, graph: Graph) -> Node | tuple[Node, ...] | str | None:
        """Return what replaces `node`, None, or why nothing does."""

    def apply(self, program: ExportedProgram) -> bool:
        """Visit every matching node of `program`, nested graphs included."""
        self.program = program
        self.mode = fake_mode_of(program)
        changed = self._sweep(program)
        again = changed and self.repeats
        while again:
            again = self._sweep(program)
        return changed

    def _sweep(self, program: ExportedProgram) -> bool:
        self.constants = Constants(program)
        changed = False
        for module in graph_modules(program.graph_module):
            changed |= self._visit(module)
        return changed

    def propagate(self, node: Node) -> None:
        """Compute the value of a new node whose value the rewrite itself needs."""
        propagate(node, self.mode)

    def call(self, graph: Graph, target: Any, *args: Any, **kwargs: Any) -> Node:
        """Add a call and compute its value."""
        node = graph.call_function(target, args, kwargs)
        self.propagate(node)
        return node

    def constant(self, node: object) -> Tensor | None:
        """Return the tensor behind the placeholder `node`, or None when it is not a constant."""
        return self.constants.get(node)

    def _visit(self, module: GraphModule) -> bool:
        graph, changed = module.graph, False
        self.constants.graph = graph
        for node in self.calls(graph):
            changed |= self._replace(node, graph)
        return changed

    def calls(self, graph: Graph) -> Iterable[Node]:
        """Yield the nodes to rewrite: those that call one of `targets`, in their order."""
        for target in self.targets:
            yield from graph.find_nodes(op="call_function", target=target)

    def _replace(self, node: Node, graph: Graph) -> bool:
        before = node.prev
        try:
            with graph.inserting_before(node):
                new = self.rewrite(node, graph)
        except GuardOnDataDependentSymNode:
            # Whether it may be rewritten, only a run could tell: it stays.
            _erase(before, node)
            return False
        except LoweringError as error:
            _erase(before, node)
            if not put_in_place(node, graph, str(error)):
                raise LoweringError(f"{where(node)}: {error}") from error
            return True
        if new is None or isinstance(new, str):
            self._note(node, new)
            return False
        self._fill_meta(before.next, node, new)
        fresh = _between(before, node)
        if isinstance(new, tuple):
            for user in list(node.users):
                index: Any = user.args[1]
                inherit(fresh, user, new[index])
                fresh = [item for item in fresh if item is not new[index]]
                user.replace_all_uses_with(new[index])
                graph.erase_node(user)
        else:
            inherit(fresh, node, new)
            if new is not node:
                node.replace_all_uses_with(new)
        if new is not node:
            graph.erase_node(node)
        return True

    def _note(self, node: Node, reason: str | None) -> None:
        """Keep at `node` why this pass leaves it; an earlier run may have said otherwise."""
        noted = {k: v for k, v in node.meta.pop(DECLINED, {}).items() if k != self.name}
        if reason is not None:
            noted[self.name] = reason
        if noted:
            node.meta[DECLINED] = noted

    def _fill_meta(self, first: Node, old: Node, new: Node | tuple[Node, ...]) -> None:
        node = first
        while node is not old:
            for key, item in old.meta.items():
                if key not in ("val", DECLINED):
                    node.meta.setdefault(key, item)
            if "val" not in node.meta:
                if node is new and isinstance(old.meta.get("val"), torch.Tensor):
                    node.meta["val"] = old.meta["val"]
                else:
                    propagate(node, self.mode)
            node = node.next


def _between(first: Node, last: Node) -> list[Node]:
    found, node = [], first.next
    while node is not last:
        found.append(node)
        node = node.next
    return found
