# SPDX-License-Identifier: BSD-3-Clause
"""The table of lowerings: what the partitioner accepts, the lowering writes and the tests run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from etx_backend_arm.values import Values

__all__ = ["TABLE", "Lowering", "arguments", "float32", "lowers", "static_shape", "why_not"]

Check = Callable[[Node], "str | None"]
Emit = Callable[[Values, Node], None]


@dataclass(frozen=True)
class Lowering:
    """How an operator is written as TOSA, and what must hold for that."""

    emit: Emit
    checks: tuple[Check, ...]


TABLE: dict[object, Lowering] = {}


def lowers(target: OpOverload, when: tuple[Check, ...]) -> Callable[[Emit], Emit]:
    """Register a function as the lowering of ``target`` wherever all checks return None."""

    def register(emit: Emit) -> Emit:
        TABLE[target] = Lowering(emit, when)
        return emit

    return register


def why_not(node: Node) -> str | None:
    """Return the first reason why ``node`` has no TOSA form, or None when it has one."""
    lowering = TABLE.get(node.target)
    if lowering is None:
        return f"{node.target} has no lowering to TOSA"
    return next((reason for check in lowering.checks if (reason := check(node))), None)


def arguments(node: Node) -> tuple[Any, ...]:
    """Return all arguments of a node in the order of its schema, defaults filled in."""
    assert isinstance(node.target, OpOverload)
    schema = node.target._schema.arguments
    given = [*node.args, *[None] * (len(schema) - len(node.args))]
    return tuple(
        given[i] if i < len(node.args) else node.kwargs.get(a.name, a.default_value)
        for i, a in enumerate(schema)
    )


def float32(node: Node) -> str | None:
    """All tensors must be float32."""
    for each in (node, *node.all_input_nodes):
        dtype = each.meta["val"].dtype
        if dtype != torch.float32:
            return f"{each.name} is {dtype}, the lowering takes torch.float32"
    return None


def static_shape(node: Node) -> str | None:
    """All sizes must be known."""
    for each in (node, *node.all_input_nodes):
        if any(not isinstance(size, int) for size in each.meta["val"].shape):
            return f"{each.name} has a dynamic shape {tuple(each.meta['val'].shape)}"
    return None
