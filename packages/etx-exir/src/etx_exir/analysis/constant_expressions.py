# SPDX-License-Identifier: BSD-3-Clause
"""What depends only on constants, and which of it a file had best store.

A result that is stored takes its bytes, one that is computed at run time takes an instruction and
what it reads: the smallest file is a minimum cut between what is computed ahead and at run time.
"""

from __future__ import annotations

import operator
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx  # type: ignore[import-untyped]
import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from etx_exir.ir.constants import Constants
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.ops import RESHAPES

__all__ = ["INSTRUCTION_BYTES", "Expression", "expressions_of", "to_store"]

INSTRUCTION_BYTES = 64
"""What an instruction takes in a file at least, with the list of its arguments."""

KEPT_NAMESPACES = frozenset({"quantized_decomposed", "torchao", "pt2e"})
WEIGHTS = (64, 8, 1)
FREE = frozenset({*RESHAPES, operator.getitem})
"""They need no instruction."""

Key = Any


@dataclass(frozen=True)
class Expression:
    """A constant, or a call whose arguments are constants; `key` tells equal ones.

    `is_shared` is said of a constant that the file holds in any case.
    """

    node: Node
    key: Key
    leaves: frozenset[Node]
    value: Tensor | None = None
    is_shared: bool = False

    @property
    def is_leaf(self) -> bool:
        """Whether this is a constant that the program holds."""
        return self.value is not None

    @property
    def nbytes(self) -> int | None:
        """Bytes of the result, None where it cannot be stored."""
        value = self.node.meta.get("val") if self.value is None else self.value
        if not isinstance(value, Tensor) or any(not isinstance(n, int) for n in value.shape):
            return None
        return value.numel() * value.itemsize

    @property
    def instruction(self) -> int:
        """Bytes of the instruction that computes the result at run time."""
        return 0 if self.is_leaf or self.node.target in FREE else INSTRUCTION_BYTES


def expressions_of(constants: Constants, alone: bool = True) -> list[Expression]:
    """Return the constants that `constants` speaks of and what is computed from them, in order.

    `alone`: what other methods hold, they will hold whatever is chosen here.
    """
    found: dict[Node, Expression] = {}
    for module in graph_modules(constants.program.graph_module):
        graph = module.graph
        if not constants.reaches(graph):
            continue
        unread = _unread(graph)
        for node in graph.nodes:
            if node.op == "placeholder":
                tensor = constants.get(node)
                if tensor is not None:
                    is_shared = alone and constants.is_shared(node)
                    leaves = frozenset({node})
                    found[node] = Expression(node, _identity(tensor), leaves, tensor, is_shared)
            elif (
                node not in unread
                and _is_pure(node)
                and all(arg in found for arg in node.all_input_nodes)
            ):
                args = [found[arg] for arg in node.all_input_nodes]
                leaves = frozenset[Node]().union(*(arg.leaves for arg in args))
                found[node] = Expression(node, _call_key(node, found), leaves)
    return list(found.values())


def _unread(graph: Graph) -> set[Node]:
    """Return the calls that no file will have, since nothing reads them."""
    found: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.op == "call_function" and found.issuperset(node.users) and _is_pure(node):
            found.add(node)
    return found


def to_store(items: Iterable[Expression]) -> set[Node]:
    """Return the nodes to replace by constants, so that little is left to compute at run time.

    The file is then no larger than without: the more an instruction counts, the more is stored,
    and of the weights in `WEIGHTS` the first serves under which no part of the program grows.
    """
    by_node = {item.node: item for item in items}
    graph = _network(by_node)
    chosen: set[Node] = set()
    for part in nx.weakly_connected_components(graph):
        parts = [by_node[node] for node in part if isinstance(node, Node)]
        if all(item.is_leaf for item in parts):
            continue
        choices = (_computed_ahead(graph.subgraph(part), by_node, w) for w in WEIGHTS)
        limit = _size(parts, {item.node for item in parts if item.is_leaf})
        ahead = next((found for found in choices if _size(parts, found) <= limit), set[Node]())
        chosen |= {i.node for i in parts if not i.is_leaf and _is_stored(i.node, ahead)}
    return chosen


def _is_stored(node: Node, ahead: Container[Node]) -> bool:
    return node in ahead and any(user not in ahead for user in node.users)


def _size(items: Sequence[Expression], ahead: Container[Node]) -> int:
    """Return the bytes of what is stored and of the instructions that are left."""
    stored = {i.key: i.nbytes or 0 for i in items if i.is_shared or _is_stored(i.node, ahead)}
    return sum(stored.values()) + sum(i.instruction for i in items if i.node not in ahead)


def _network(items: dict[Node, Expression]) -> Any:
    """Link each result, by what storing it takes, to the calls that read it.

    An edge without a capacity is never cut.
    """
    graph = nx.DiGraph()
    for node, item in items.items():
        stored, read = ("stored", item.key), ("read", item.key)
        graph.add_edge(node, stored)
        capacity = {} if item.nbytes is None else {"capacity": item.nbytes}
        graph.add_edge(stored, read, **capacity)
        for user in node.users:
            if user in items:
                graph.add_edge(read, user)
                graph.add_edge(user, node)
    return graph


def _computed_ahead(part: Any, items: dict[Node, Expression], weight: int) -> set[Node]:
    """Return what the smallest file has computed, were each instruction `weight` times as large."""
    network = nx.DiGraph(part)
    for node in [node for node in part if isinstance(node, Node)]:
        item = items[node]
        if item.is_leaf:
            network.add_edge("ahead", node)
        else:
            network.add_edge("ahead", node, capacity=item.instruction * weight)
        if item.is_shared or any(user not in items for user in node.users):
            network.add_edge(("read", item.key), "at run time")
    if "at run time" not in network:
        return {node for node in part if isinstance(node, Node)}
    _, (ahead, _) = nx.minimum_cut(network, "ahead", "at run time")
    return {node for node in ahead if isinstance(node, Node)}


def _identity(tensor: Tensor) -> Key:
    """Tell apart tensors that do not share all of their memory."""
    if not tensor.numel():
        return ("empty", tensor.dtype, tuple(tensor.shape))
    return (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())


def _call_key(node: Node, found: dict[Node, Expression]) -> Key:
    """Equal calls of equal arguments have equal keys."""

    def refer(node: Node) -> Any:
        return _Reference(found[node].key)

    return (str(node.target), repr(map_arg((node.args, node.kwargs), refer)))


class _Reference:
    """An argument, in the text of a call."""

    def __init__(self, key: Key) -> None:
        self.text = f"#{hash(key):x}"

    def __repr__(self) -> str:
        return self.text


def _is_pure(node: Node) -> bool:
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return True
    if not isinstance(node.target, OpOverload) or node.target.namespace in KEPT_NAMESPACES:
        return False
    if torch.Tag.nondeterministic_seeded in node.target.tags:
        return False
    return not node.target._schema.is_mutable
