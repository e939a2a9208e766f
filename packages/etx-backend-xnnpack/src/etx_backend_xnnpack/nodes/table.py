# SPDX-License-Identifier: BSD-3-Clause
"""The table of lowerings: what XNNPACK has a form for, under which conditions, and who emits it.

The partitioner, the serializer, the tests and the page of supported operators read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from etx_exir.ir.constants import Constants
from torch import Tensor
from torch.fx import Node

from etx_backend_xnnpack.builder import FLOATS
from etx_backend_xnnpack.quantized import argument, weight
from etx_backend_xnnpack.values import Values

Emit = Callable[[Values, Node], None]
Check = Callable[[Node, Constants], str | None]
MOST_DIMENSIONS = 6


class Work(Enum):
    """What a node brings when it is delegated."""

    HEAVY = "pays for a delegate"
    LIGHT = "joins heavy ones"
    MOVES = "only moves elements: not at the border of a delegate"


@dataclass(frozen=True)
class Lowering:
    """How nodes of an operator are emitted, and what must hold for it.

    `int8` ones take and return int8 between dequantize and quantize nodes; `dynamic` ones quantize
    the rows of their activation at run time. `only_first`: of several results, one is computed.
    `whole`: the operator is kept from being decomposed. `masks`: it may read a constant of bool.
    `wide` ones compute in float32 between what is float16: XNNPACK's float16 is not as exact as
    PyTorch's, or a kernel of one element at a time. `kind` is the row of `speeds.json` that tells
    what it takes.
    """

    emit: Emit
    checks: tuple[Check, ...] = ()
    work: Work = Work.LIGHT
    int8: bool = False
    dynamic: bool = False
    only_first: bool = False
    whole: bool = False
    masks: bool = False
    wide: bool = False
    note: str = ""
    kind: str = "arithmetic"


TABLE: dict[Any, Lowering] = {}


def lowers(*targets: Any, when: Sequence[Check] = (), **facts: Any) -> Callable[[Emit], Emit]:
    """Enter the decorated function into the table for these operators."""

    def enter(emit: Emit) -> Emit:
        for target in targets:
            TABLE[target] = Lowering(emit, tuple(when), **facts)
        return emit

    return enter


def why_not(node: Node, constants: Constants) -> str | None:
    """Return why XNNPACK has no form for `node`, or None when it has one."""
    row = TABLE.get(node.target)
    if row is None:
        return f"XNNPACK has no form for {node.target}"
    reason = _tensors(node, row, constants)
    for check in () if reason else row.checks:
        reason = check(node, constants)
        if reason is not None:
            break
    return reason


def _tensors(node: Node, row: Lowering, constants: Constants) -> str | None:
    """Return what of the tensors that a node reads and writes has no form."""
    results = node.meta.get("val")
    if isinstance(results, (tuple, list)):
        if row.only_first and any(user.args[1] != 0 for user in node.users):
            return "only the first of its results is computed"
        results = results[:1] if row.only_first else results
    else:
        results = [results]
    read = [arg.meta.get("val") for arg in node.all_input_nodes if constants.get(arg) is None]
    for value in (*results, *read):
        reason = _tensor(value)
        if reason is not None:
            return reason
    known = (constants.get(arg) for arg in node.all_input_nodes)
    return next((reason for each in known if (reason := _constant(each, row))), None)


def _constant(tensor: Tensor | None, row: Lowering) -> str | None:
    """Return why a constant has no form; it may have no dimensions."""
    if tensor is None or (row.masks and tensor.dtype is torch.bool):
        return None
    return _tensor(tensor if tensor.dim() else tensor.reshape(1))


def _tensor(value: object) -> str | None:
    if not isinstance(value, Tensor):
        return "a size is computed at run time"
    if value.dtype not in FLOATS:
        return f"a tensor is {str(value.dtype).removeprefix('torch.')}, not float32 or float16"
    if value.dim() == 0:
        return "a tensor has no dimensions"
    if value.dim() > MOST_DIMENSIONS:
        return f"a tensor has {value.dim()} dimensions, more than {MOST_DIMENSIONS}"
    if any(isinstance(size, int) and size == 0 for size in value.shape):
        return "a tensor has no elements"
    return None


def shape_of(node: object) -> list[Any]:
    """Return the sizes of a node's tensor."""
    assert isinstance(node, Node)
    return list(node.meta["val"].shape)


def rank(*ranks: int, of: str | None = None) -> Check:
    """Require the first tensor, or the argument `of`, to have so many dimensions."""

    def check(node: Node, constants: Constants) -> str | None:
        given = argument(node, of) if of else node.args[0]
        found = len(shape_of(given))
        allowed = " or ".join(map(str, ranks))
        return None if found in ranks else f"its argument has {found} dimensions, not {allowed}"

    return _says(check, f"{' or '.join(map(str, ranks))} dimensions")


def constant(name: str) -> Check:
    """Require the argument `name` to be a constant, quantized or not, or absent."""

    def check(node: Node, constants: Constants) -> str | None:
        given = argument(node, name)
        if given is None or constants.get(given) is not None:
            return None
        if weight(given, constants.get) is not None:
            return None
        return f"{name} is computed at run time"

    return _says(check, f"constant {name}")


def one_symbol(node: Node, constants: Constants) -> str | None:
    """Require all sizes of the result but one to be known."""
    unknown = sum(not isinstance(size, int) for size in shape_of(node))
    return None if unknown <= 1 else f"{unknown} sizes of its result are known at run time only"


def equals(name: str, expected: Any) -> Check:
    """Require an argument to have this value."""

    def check(node: Node, constants: Constants) -> str | None:
        given = argument(node, name)
        return None if given == expected else f"{name} is {given}; expected {expected}"

    return _says(check, f"{name} = {expected}")


def _says(check: Check, what: str) -> Check:
    """Give a check the text that the page of operators shows."""
    check.__doc__ = f"Require {what}."
    return check
