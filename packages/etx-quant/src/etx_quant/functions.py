# SPDX-License-Identifier: BSD-3-Clause
"""Functions of one tensor, written with several operators: quantized before and behind as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from etx_quant.rows import CLAMPS, ROWS, Arithmetic, Weighted

__all__ = ["Function", "function_of", "is_pointwise", "written_functions"]

aten = torch.ops.aten
CHOICES = frozenset(
    {
        aten.masked_fill.Scalar,
        aten.where.Scalar,
        aten.where.ScalarOther,
        aten.where.ScalarSelf,
        aten.where.self,
    }
)
"""What ends a function beside operators that have rows; by itself it stays float."""

UNTAGGED = frozenset(
    {
        aten.hardswish.default,
        aten.hardswish_.default,
        aten.log_sigmoid.default,
        aten.mish_.default,
        aten.relu6_.default,
    }
)
"""Elementwise operators of which torch does not say so."""

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class _Place:
    """Where an argument is: the source at 0, the results of the calls behind it."""

    index: int


@dataclass(frozen=True)
class Function:
    """What operators compute of one tensor, element by element; it holds no node of the graph."""

    calls: tuple[Call, ...]

    def __call__(self, x: Tensor) -> Tensor:
        """Return the result of the last call."""
        values = [x]
        for target, args, kwargs in self.calls:
            args, kwargs = _filled((args, kwargs), values)
            values.append(target(*args, **kwargs))
        return values[-1]


def _filled(given: Any, values: Sequence[Tensor]) -> Any:
    if isinstance(given, _Place):
        return values[given.index].clone()  # an operator may write into it
    if isinstance(given, (list, tuple)):
        return type(given)(_filled(each, values) for each in given)
    if isinstance(given, dict):
        return {name: _filled(each, values) for name, each in given.items()}
    return given


def function_of(nodes: Sequence[Node], source: Node) -> Function:
    """Return the function that `nodes`, in the order of the graph, compute of `source`."""
    places = {node: _Place(i) for i, node in enumerate([source, *nodes])}
    look: Callable[[Node], Any] = places.__getitem__
    return Function(
        tuple((n.target, map_arg(n.args, look), map_arg(n.kwargs, look)) for n in nodes)
    )


def written_functions(graph: Graph) -> list[tuple[Node, list[Node]]]:
    """Return the source and the operators of each function that several compute, in order."""
    sources: dict[Node, Node] = {}
    for node in graph.nodes:
        source = _source(node, sources)
        if source is not None:
            sources[node] = source
    found = []
    for node, source in sources.items():
        is_last = any(sources.get(user) is not source for user in node.users) or not node.users
        if is_last and (node.target in CHOICES or isinstance(ROWS.get(node.target), Arithmetic)):
            inner = _between(node, source)
            if len(inner) > 1 and all(set(n.users) <= set(inner) for n in inner[:-1]):
                found.append((source, inner))
    return found


def is_pointwise(target: object) -> bool:
    """Tell whether an operator computes each element of its result from those in its place."""
    tags = getattr(target, "tags", ())
    is_random = torch.Tag.nondeterministic_seeded in tags
    return target in UNTAGGED or (torch.Tag.pointwise in tags and not is_random)


def _source(node: Node, sources: dict[Node, Node]) -> Node | None:
    """Return the one tensor of which the result of `node` is a function."""
    if not is_pointwise(node.target) or _is_taken_in(node, sources):
        return None
    is_mutable = node.target._schema.is_mutable  # type: ignore[union-attr]
    if is_mutable and len(node.args[0].users) > 1:  # type: ignore[union-attr]
        return None
    found = {sources.get(n, n) for n in node.all_input_nodes}
    if len(found) != 1:
        return None
    (source,) = found
    value, result = source.meta.get("val"), node.meta.get("val")
    if source.op == "get_attr" or not isinstance(value, Tensor) or not isinstance(result, Tensor):
        return None
    is_float = value.dtype == torch.float32 and result.dtype in (torch.float32, torch.bool)
    return source if is_float and value.dim() == result.dim() else None


def _is_taken_in(node: Node, sources: dict[Node, Node]) -> bool:
    """Tell whether `node` is a clamp that is the bounds of the operator before it."""
    before = node.args[0] if node.target in CLAMPS else None
    if not isinstance(before, Node) or before in sources or len(before.users) > 1:
        return False
    return isinstance(ROWS.get(before.target), (Weighted, Arithmetic))


def _between(last: Node, source: Node) -> list[Node]:
    found, pending = {last}, [last]
    while pending:
        for node in pending.pop().all_input_nodes:
            if node is not source and node not in found:
                found.add(node)
                pending.append(node)
    return sorted(found)
