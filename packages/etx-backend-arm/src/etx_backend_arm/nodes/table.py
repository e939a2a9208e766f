# SPDX-License-Identifier: BSD-3-Clause
"""The table of lowerings: what the partitioner accepts, the lowering writes and the tests run."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from etx_exir.ir.ops import arguments as by_name
from torch.fx import Node

from etx_backend_arm.quantized import Look, find_step, split_of
from etx_backend_arm.values import Values

__all__ = [
    "FLOATS",
    "TABLE",
    "Check",
    "Form",
    "Lowering",
    "Profile",
    "arguments",
    "float32",
    "floating",
    "form_of",
    "integers",
    "lowers",
    "picked_only",
    "quantized",
    "static_shape",
    "why_not",
]

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
"""What the profile FP computes in; the last with an extension."""
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


Lowering = dict[Profile, tuple[Form, ...]]
"""The forms of an operator in the order in which they are tried."""
TABLE: dict[object, Lowering] = {}


def lowers(
    target: object, when: tuple[Check, ...], profile: Profile = Profile.FP
) -> Callable[[Emit], Emit]:
    """Register a function as a lowering of ``target`` wherever all checks return None."""

    def register(emit: Emit) -> Emit:
        forms = TABLE.setdefault(target, {})
        forms[profile] = (*forms.get(profile, ()), Form(emit, when))
        return emit

    return register


def why_not(node: Node, look: Look, profile: Profile) -> str | None:
    """Return the first reason why ``node`` has no TOSA form, or None when it has one.

    ``look`` returns the tensor of a constant's placeholder, None for other nodes.
    """
    found = form_of(node, look, profile)
    return found if isinstance(found, str) else None


def form_of(node: Node, look: Look, profile: Profile) -> Form | str:
    """Return the first form whose checks hold, or why the one of which most hold does not."""
    most, reason = -1, f"{node.target} has no lowering to TOSA {profile.value}"
    for form in TABLE.get(node.target, {}).get(profile, ()):
        refusals = ((i, check(node, look)) for i, check in enumerate(form.checks))
        found = next(((i, refusal) for i, refusal in refusals if refusal), None)
        if found is None:
            return form
        if found[0] > most:
            most, reason = found
    return reason


def arguments(node: Node) -> tuple[Any, ...]:
    """Return all arguments of a node in the order of its schema, defaults filled in."""
    return tuple(by_name(node).values())


def _tensors(node: Node) -> list[tuple[str, torch.Tensor]]:
    """Return what an operator reads and makes, by name; of a result that is picked, its maker's."""
    maker = split_of(node) or node
    found = []
    for each in (node, *maker.all_input_nodes):
        held = each.meta.get("val", ())  # a branch has none
        tensors = held if isinstance(held, (list, tuple)) else [held]
        found += [(each.name, tensor) for tensor in tensors]
    return found


def floating(node: Node, look: Look) -> str | None:
    """All tensors must be of one of the types in ``FLOATS``."""
    tensors = _tensors(node)
    dtype = tensors[0][1].dtype
    for name, tensor in tensors:
        if tensor.dtype not in FLOATS:
            return f"{name} is {tensor.dtype}, the lowering takes {', '.join(map(str, FLOATS))}"
        if tensor.dtype != dtype:
            return f"{name} is {tensor.dtype}, and {tensors[0][0]} is {dtype}: they must be alike"
    return None


def float32(node: Node, look: Look) -> str | None:
    """All tensors must be float32."""
    for name, tensor in _tensors(node):
        if tensor.dtype != torch.float32:
            return f"{name} is {tensor.dtype}, the lowering takes torch.float32"
    return None


def integers(node: Node, look: Look) -> str | None:
    """What is read must be dequantized from int8, or all from int16; what is made quantized so."""
    found = find_step(node, look)
    if isinstance(found, str):
        return found
    types = {form.dtype for form in (*found.forms, found.form)}
    return None if len(types) == 1 else f"{node.name} is between int8 and int16"


def quantized(node: Node, look: Look) -> str | None:
    """What is read must be dequantized from int8, what is made must be quantized to int8."""
    found = find_step(node, look)
    if isinstance(found, str):
        return found
    if any(form.is_wide for form in (*found.forms, found.form)):
        return f"{node.name} is between int16, its lowering takes int8"
    return None


def static_shape(node: Node, look: Look) -> str | None:
    """All sizes must be known, and none zero."""
    for name, tensor in _tensors(node):
        if any(not isinstance(size, int) for size in tensor.shape):
            return f"{name} has a dynamic shape {tuple(tensor.shape)}"
        if tensor.numel() == 0:
            return f"{name} has no elements: {tuple(tensor.shape)}"
    return None


def picked_only(node: Node, look: Look) -> str | None:
    """Results are picked one by one."""
    if all(user.target is operator.getitem for user in node.users):
        return None
    return f"the results of {node.name} are read together"
