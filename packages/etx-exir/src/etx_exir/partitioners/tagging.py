# SPDX-License-Identifier: BSD-3-Clause
"""Which constants and buffers go into the partitions that use them."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.fx import Node

from etx_exir.delegation.backend import DELEGATION_TAG
from etx_exir.delegation.outline import mutations
from etx_exir.ir.constants import Constants

__all__ = ["tag_constant_data", "tag_mutated_buffer"]


def tag_constant_data(program: ExportedProgram) -> None:
    """Tag every constant that tagged nodes use, so that it moves into their partition.

    A constant that several partitions use, or one and a node outside, is duplicated: each
    partition has its own placeholder of the same tensor.
    """
    constants = Constants(program)
    for node, _ in list(constants.items()):
        users: dict[str | None, list[Node]] = {}
        for user in node.users:
            users.setdefault(user.meta.get(DELEGATION_TAG), []).append(user)
        tags = [tag for tag in users if tag is not None]
        for tag in tags[1:] if None not in users else tags:
            copy = constants.duplicate(node)
            copy.meta[DELEGATION_TAG] = tag
            for user in users[tag]:
                user.replace_input_with(node, copy)
        if tags and None not in users:
            node.meta[DELEGATION_TAG] = tags[0]


def tag_mutated_buffer(program: ExportedProgram) -> None:
    """Tag every mutable buffer that only one partition reads and writes: it owns the state.

    Such a buffer is no longer state of the program: `get_state` and `reset_state` do not see it,
    and no other method shares it. Others stay outside: the delegate gets the old value and returns
    the new one. So does a buffer of a partition that would return nothing else.
    """
    changed = mutations(program)
    nodes = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    for name, new in changed.items():
        tag = new.meta.get(DELEGATION_TAG)
        if new.op != "call_function" or tag is None:
            continue
        users = {user.meta.get(DELEGATION_TAG) for user in nodes[name].users}
        if users <= {tag} and _returns_more(program, tag, set(changed.values())):
            nodes[name].meta[DELEGATION_TAG] = tag


def _returns_more(program: ExportedProgram, tag: str, written: set[Node]) -> bool:
    """Tell whether nodes outside, or the caller, read something of the partition `tag`."""
    return any(
        user.meta.get(DELEGATION_TAG) != tag and (user.op != "output" or node not in written)
        for node in program.graph.nodes
        if node.op == "call_function" and node.meta.get(DELEGATION_TAG) == tag
        for user in node.users
    )
