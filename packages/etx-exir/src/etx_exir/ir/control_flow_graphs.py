# SPDX-License-Identifier: BSD-3-Clause
"""What control-flow operators hand to the graphs of their branches and bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch._ops import HigherOrderOperator
from torch.fx import Graph, GraphModule, Node

__all__ = ["Captures", "captures", "graph_modules"]

FORMS = {"cond": (2, ()), "while_loop": (2, (2,)), "scan": (1, (1, 2)), "map_impl": (1, (1,))}
"""By operator: how many graphs it takes, and which arguments come before those it captures."""


def graph_modules(root: GraphModule) -> Iterator[GraphModule]:
    """Yield `root` and the branches and loop bodies nested in it, innermost last."""
    yield root
    for node in root.graph.find_nodes(op="get_attr"):
        child = getattr(root, node.target, None) if "." not in node.target else None
        if isinstance(child, GraphModule):
            yield from graph_modules(child)


@dataclass(frozen=True)
class Captures:
    """The operands of one call of an operator that are the same in every turn and branch."""

    node: Node
    modules: tuple[GraphModule, ...]
    first: int

    @property
    def operands(self) -> tuple[Any, ...]:
        """The nodes and numbers that are captured."""
        return tuple(self.node.args[-1])  # type: ignore[arg-type]

    def placeholders(self, index: int) -> list[Node]:
        """Return what stands for operand `index` in each graph."""
        return [
            module.graph.find_nodes(op="placeholder")[self.first + index] for module in self.modules
        ]

    def add(self, operand: Node) -> list[Node]:
        """Capture `operand` too; return what stands for it in each graph."""
        added = []
        for module in self.modules:
            placeholders = module.graph.find_nodes(op="placeholder")
            with _after(module.graph, placeholders):
                node = module.graph.placeholder(f"captured_{operand.name}")
            node.meta["val"] = operand.meta["val"]
            module.recompile()
            added.append(node)
        self._set([*self.operands, operand])
        return added

    def drop_unused(self) -> bool:
        """Capture no longer what no graph reads; return whether there was any."""
        unused = {
            i for i in range(len(self.operands)) if not any(p.users for p in self.placeholders(i))
        }
        for index in sorted(unused, reverse=True):
            for module, placeholder in zip(self.modules, self.placeholders(index), strict=True):
                module.graph.erase_node(placeholder)
                module.recompile()
        if unused:
            self._set([o for i, o in enumerate(self.operands) if i not in unused])
        return bool(unused)

    def _set(self, operands: list[Any]) -> None:
        kept = operands if isinstance(self.node.args[-1], list) else tuple(operands)
        self.node.args = (*self.node.args[:-1], kept)


def _after(graph: Graph, placeholders: list[Node]) -> Any:
    if placeholders:
        return graph.inserting_after(placeholders[-1])
    return graph.inserting_before(next(iter(graph.nodes)))


def captures(root: GraphModule) -> list[Captures]:
    """Return those of every call in `root` and in nested graphs whose graphs only it uses."""
    found: list[Captures] = []
    uses: dict[GraphModule, int] = {}
    for module in graph_modules(root):
        for node in module.graph.nodes:
            form = FORMS.get(getattr(node.target, "_name", ""))
            if not isinstance(node.target, HigherOrderOperator) or form is None:
                continue
            start = int(node.target._name == "cond")
            graphs = [getattr(module, str(g.target)) for g in node.args[start : start + form[0]]]
            for graph in graphs:
                uses[graph] = uses.get(graph, 0) + 1
            before = sum(len(node.args[i]) for i in form[1])
            found.append(Captures(node, tuple(graphs), before))
    return [item for item in found if all(uses[graph] == 1 for graph in item.modules)]
