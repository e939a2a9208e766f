# SPDX-License-Identifier: BSD-3-Clause
"""The table of lowerings: what the partitioner accepts, the lowering writes and the tests run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from etx_backend_arm.quantized import Look, find_step
from etx_backend_arm.values import Values

__all__ = [
    "TABLE",
    "Form",
    "Lowering",
    "Profile",
    "arguments",
    "float32",
    "lowers",
    "quantized",
    "static_shape",
    "why_not",
]

Check = Callable[[Node, Look], "str | None"]
Emit = Callable[[Values, Node], None]


class Profile(Enum):
    """The profiles of TOSA 1.0."""

    INT = "INT"
    FP = "FP"


@dataclass(frozen=True)
class Form:
    """How an operator is written in a profile, and what must hold for that."""

    emit: Emit
    checks: tuple[Check, ...]


Lowering = dict[Profile, Form]
TABLE: dict[object, Lowering] = {}


def lowers(
    target: OpOverload, when: tuple[Check, ...], profile: Profile = Profile.FP
) -> Callable[[Emit], Emit]:
    """Register a function as the lowering of ``target`` wherever all checks return None."""

    def register(emit: Emit) -> Emit:
        TABLE.setdefault(target, {})[profile] = Form(emit, when)
        return emit

    return register


def why_not(node: Node, look: Look, profile: Profile) -> str | None:
    """Return the first reason why ``node`` has no TOSA form, or None when it has one.

    ``look`` returns the tensor of a constant's placeholder, None for other nodes.
    """
    form = TABLE.get(node.target, {}).get(profile)
    if form is None:
        return f"{node.target} has no lowering to TOSA {profile.value}"
    return next((reason for check in form.checks if (reason := check(node, look))), None)


def arguments(node: Node) -> tuple[Any, ...]:
    """Return all arguments of a node in the order of its schema, defaults filled in."""
    assert isinstance(node.target, OpOverload)
    schema = node.target._schema.arguments
    given = [*node.args, *[None] * (len(schema) - len(node.args))]
    return tuple(
        given[i] if i < len(node.args) else node.kwargs.get(a.name, a.default_value)
        for i, a in enumerate(schema)
    )


def float32(node: Node, look: Look) -> str | None:
    """All tensors must be float32."""
    for each in (node, *node.all_input_nodes):
        dtype = each.meta["val"].dtype
        if dtype != torch.float32:
            return f"{each.name} is {dtype}, the lowering takes torch.float32"
    return None


def quantized(node: Node, look: Look) -> str | None:
    """What is read must be dequantized from int8, what is made must be quantized to int8."""
    found = find_step(node, look)
    return found if isinstance(found, str) else None


def static_shape(node: Node, look: Look) -> str | None:
    """All sizes must be known."""
    for each in (node, *node.all_input_nodes):
        if any(not isinstance(size, int) for size in each.meta["val"].shape):
            return f"{each.name} has a dynamic shape {tuple(each.meta['val'].shape)}"
    return None
