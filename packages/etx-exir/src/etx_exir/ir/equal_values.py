# SPDX-License-Identifier: BSD-3-Clause
"""Which value of the exported program the result of a node equals.

A node's note is the name of that value's node, after the path of its graph where it is nested:
``conv2d_1``, ``true_graph_0.sin``. A part of an operator that torch decomposed is noted by its
place among the calls that the operator became, and by what it calls: ``gru#4:sigmoid.default``. A
node without a note computes what no node of either program does: it came of several that were
fused, or of one that a pass took apart.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from etx_exir.ir.ops import PERMUTATIONS, VIEW, permutation

__all__ = [
    "EQUALS",
    "INNER",
    "Note",
    "forget",
    "inherit",
    "note_exported",
    "note_of",
    "place_beside",
    "scale",
]

EQUALS = "equals"
INNER = "#"
"""Stands in the names of parts of a decomposed operator, between its name and the part's place."""
Note = str | tuple[str, float] | tuple[str, float, list[int]]
"""The name of an exported value; the factor by which the result is larger; how it is permuted.

-1 among the dimensions is one of size 1 that the exported value lacks.
"""

NUMBERS = (bool, int, float, torch.SymBool, torch.SymInt, torch.SymFloat)
TRACED = "ExportedProgram.module()"


def note_of(node: Node) -> Note | None:
    """Return the note of `node`, None when it has none."""
    note: Note | None = node.meta.get(EQUALS)
    return note


def inherit(fresh: Iterable[Node], old: Node, new: Node) -> None:
    """Let `new`, which takes the place of `old`, have its note, and the other `fresh` ones none.

    Of the latter, those have one that hold a noted value in another order, or with more dimensions.
    """
    note = note_of(old)
    kept = new if any(new is node for node in fresh) else None
    forget(node for node in fresh if node is not kept)
    if kept is not None:
        forget([kept])
    for node in fresh:
        _note_widened(node, fresh)
    if note is not None:
        if _is_inner(note_of(new)) and not _is_inner(note):
            forget([new])
        new.meta.setdefault(EQUALS, note)
        _note_permuted(new, fresh)


def _is_inner(note: Note | None) -> bool:
    name = note[0] if isinstance(note, tuple) else note
    return name is not None and INNER in name


def _note_permuted(node: Node, fresh: Iterable[Node]) -> None:
    """Note of the new node that `node` permutes that it holds the same value, permuted back."""
    note = note_of(node)
    source: Any = node.args[0] if node.target in PERMUTATIONS else None
    if not isinstance(note, str) or not any(source is item for item in fresh):
        return
    order = permutation(node)
    source.meta[EQUALS] = (note, 1.0, [order.index(dim) for dim in range(len(order))])


def _note_widened(node: Node, fresh: Iterable[Node]) -> None:
    """Note of a new view that puts dimensions of 1 before those of a value that it holds that."""
    source: Any = node.args[0] if node.target is VIEW else None
    if source is None or any(source is item for item in fresh) or "val" not in node.meta:
        return
    note, sizes, before = note_of(source), *(tuple(n.meta["val"].shape) for n in (node, source))
    added = len(sizes) - len(before)
    if note is None or added <= 0 or str(sizes) != str((1,) * added + before):
        return
    name, factor, *order = note if isinstance(note, tuple) else (note, 1.0)
    (kept,) = order or [list(range(len(before)))]
    node.meta[EQUALS] = (name, factor, [-1] * added + kept)


def forget(nodes: Iterable[Node]) -> None:
    """Take away the notes of `nodes`, whose values have become others."""
    for node in nodes:
        node.meta.pop(EQUALS, None)


def place_beside(new: Node, node: Node) -> None:
    """Let `new` come from the module and source line of `node`, whose value it does not hold."""
    new.meta.update({key: item for key, item in node.meta.items() if key not in ("val", EQUALS)})


def scale(nodes: Iterable[Node], factor: float) -> None:
    """Note that `nodes` have become `factor` times as large."""
    for node in nodes:
        note = note_of(node)
        if note is not None:
            name, before, *rest = note if isinstance(note, tuple) else (note, 1.0)
            node.meta[EQUALS] = (name, before * factor, *rest)


def note_exported(source: ExportedProgram, result: ExportedProgram, traced: bool) -> None:
    """Note in `result`, a decomposition of `source`, which nodes hold the latter's values.

    `traced` says whether torch has run `source` to make it; else it is a copy.
    """
    graphs = dict(_graphs(source.graph_module))
    for path, module in _graphs(result.graph_module):
        if path in graphs:
            _note_graph(graphs[path].graph, module.graph, path, traced)


def _graphs(root: GraphModule, path: str = "") -> Iterator[tuple[str, GraphModule]]:
    yield path, root
    for node in root.graph.find_nodes(op="get_attr"):
        child = getattr(root, node.target, None) if "." not in node.target else None
        if isinstance(child, GraphModule):
            yield from _graphs(child, f"{path}{node.target}.")


def _note_graph(source: Graph, result: Graph, path: str, traced: bool) -> None:
    groups: dict[str, list[Node]] = {}
    for node in result.nodes:
        if node.op == "call_function":
            forget([node])
            groups.setdefault(_maker(node) if traced else node.name, []).append(node)
    calls = {node.name: node for node in source.nodes if node.op == "call_function"}
    for name, group in groups.items():
        if name in calls:
            _note_group(calls[name], group, path)


def _note_group(call: Node, group: list[Node], path: str) -> None:
    """Note the last node of a decomposition that is like its result, or the parts of a tuple.

    The others are noted by their places.
    """
    value = call.meta.get("val")
    if isinstance(value, Tensor):
        alike = [node for node in group if _is_like(node.meta.get("val"), value)]
        if alike:
            alike[-1].meta[EQUALS] = path + call.name
    elif isinstance(value, (tuple, list)):
        parts = _parts(call)
        whole = [node for node in group if isinstance(node.meta.get("val"), (tuple, list))]
        if whole and len(whole[-1].meta["val"]) == len(value):
            for index, node in _parts(whole[-1]).items():
                part = parts.get(index)
                if part is not None and _is_part(node.meta.get("val"), part.meta.get("val")):
                    node.meta[EQUALS] = path + part.name
    elif isinstance(value, NUMBERS):
        group[-1].meta[EQUALS] = path + call.name
    for index, node in enumerate(group):
        if isinstance(node.meta.get("val"), Tensor) and len(group) > 1:
            kind = getattr(node.target, "__name__", str(node.target))
            node.meta.setdefault(EQUALS, f"{path}{call.name}{INNER}{index}:{kind}")


def _parts(node: Node) -> Mapping[Any, Node]:
    users = [user for user in node.users if user.target is operator.getitem]
    return {user.args[1]: user for user in users}


def _is_part(value: Any, other: Any) -> bool:
    return _is_like(value, other) if isinstance(other, Tensor) else True


def _is_like(value: Any, other: Tensor) -> bool:
    if not isinstance(value, Tensor) or value.dtype != other.dtype:
        return False
    return str(tuple(value.shape)) == str(tuple(other.shape))


def _maker(node: Node) -> str:
    """Return the name of the node that torch was running when it made `node`."""
    chain = []
    sources = node.meta.get("from_node")
    while sources:
        chain.append(sources[-1])
        sources = sources[-1].from_node
    made = [source.name for source in chain if source.pass_name == TRACED]
    return str((made or [source.name for source in chain] or [node.name])[0])
