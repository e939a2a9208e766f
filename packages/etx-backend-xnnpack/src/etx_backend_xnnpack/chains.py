# SPDX-License-Identifier: BSD-3-Clause
"""``f(q(x)), g(q(x))`` -> ``f(q(x)), g(q'(x))``: what is delegated has its chain for itself.

A chain quantizes rows at run time; a delegate takes along those that its layers read, so that
nothing else may read them.
"""

from __future__ import annotations

from collections.abc import Callable

from torch.fx import Graph, Node

from etx_backend_xnnpack.quantized import dynamic


def own_chains(graph: Graph, is_delegated: Callable[[Node], bool], *, each: bool) -> None:
    """Copy chains for layers that are delegated: one for all that share it, or one for `each`."""
    taken = [n for n in graph.nodes if n.args and dynamic(n.args[0]) and is_delegated(n)]
    copied: dict[Node, dict[Node, Node]] = {}
    for node in taken:
        source = node.args[0]
        chain = dynamic(source)
        assert chain is not None
        assert isinstance(source, Node)
        first = chain.nodes[0]
        if not each and first in copied:
            _copy(graph, node, source, chain.nodes, copied[first])
        elif not _is_its_own(chain.nodes, {node} if each else set(taken)):
            copies = copied.setdefault(first, {}) if not each else {}
            _copy(graph, node, source, chain.nodes, copies)
    for node in taken:
        _find_own_range(graph, node)


def _find_own_range(graph: Graph, node: Node) -> None:
    """Let a chain find the range that its tensor has: XNNPACK finds no other one."""
    chain = dynamic(node.args[0])
    assert chain is not None
    wider = chain.nodes[0].args[0]
    assert isinstance(wider, Node)
    if wider is chain.source:
        return
    chain.nodes[0].replace_input_with(wider, chain.source)
    for part in (wider, *wider.all_input_nodes):
        if not part.users and part is not chain.source:
            graph.erase_node(part)


def _is_its_own(chain: tuple[Node, ...], layers: set[Node]) -> bool:
    """Tell whether nothing but `layers` reads what comes from the first of a chain."""
    known, waiting = set(chain), [user for part in chain for user in part.users]
    for user in waiting:
        if user in known or user in layers:
            continue
        if user.args[0] not in known or not dynamic(user):
            return False
        known.add(user)
        waiting.extend(user.users)
    return True


def _copy(
    graph: Graph, node: Node, source: Node, chain: tuple[Node, ...], copies: dict[Node, Node]
) -> None:
    """Let `node` read copies of `chain`; those that are there already are not made again."""
    with graph.inserting_before(node):
        for part in chain:
            if part not in copies:
                copies[part] = graph.node_copy(part, lambda arg: copies.get(arg, arg))
    node.replace_input_with(source, copies[source])
