# SPDX-License-Identifier: BSD-3-Clause
"""An instruction's operator in eager PyTorch, on the values that the instruction got."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from etx_schema import (
    Bool,
    BoolList,
    Double,
    DoubleList,
    ExecutionPlan,
    Int,
    IntList,
    KernelCall,
    OptionalTensorList,
    String,
    TensorList,
)
from etx_schema import Tensor as WireTensor
from etx_schema.dtypes import DTYPES
from etx_schema.inspect.reads_writes import PART, VIEW, split_results
from etx_schema.operator_names import operator_name
from torch import Tensor
from torch._ops import OpOverload

from etx_devtools.compare.memory import dtype_of, part_of

__all__ = ["NoOperatorError", "eager_results"]

COPIES = ("dim_order_ops::_to_dim_order_copy.out", "dim_order_ops::_clone_dim_order.out")
NAMESPACE = "etx"
COPY_INDEX = "executorch_prim::et_copy_index.tensor"
FORMATS: Mapping[int, torch.memory_format] = {0: torch.contiguous_format, 1: torch.preserve_format}


class NoOperatorError(Exception):
    """Why torch cannot compute what an instruction does."""


def eager_results(
    plan: ExecutionPlan,
    call: KernelCall,
    read: Callable[[int], Any],
    shapes: Mapping[int, Sequence[int]],
    wide: bool = False,
) -> dict[int, Any]:
    """Return what torch computes for the results of `call`, by slot.

    `read` returns the tensor or number of a slot before the instruction ran; `shapes` are those
    that the results have; `wide`: floats are computed in float64.
    """

    def lookup(slot: int) -> Any:
        value = read(slot)
        is_float = isinstance(value, Tensor) and value.is_floating_point()
        return value.double() if wide and is_float else value

    name = operator_name(plan, call.op_index)
    results, _ = split_results(plan, call.args)
    if name in COPIES:
        out: Any = plan.values[results[0]].val
        return {results[0]: lookup(call.args[0]).to(dtype_of(out))}
    if name == VIEW:
        view = call.args[-1]
        return {view: lookup(call.args[0]).reshape(list(shapes[view]))}
    if name == PART:
        source, first, view = call.args[:3]
        return {view: part_of(lookup(source), int(read(first)), shapes[view])}
    if name.startswith("aten::copy_"):
        target = _tensor(plan, call.args[0])
        source = lookup(call.args[1]).to(dtype_of(target))
        return {call.args[0]: source.expand(list(shapes.get(call.args[0], target.sizes)))}
    if name == COPY_INDEX:
        stack, row, index = call.args[:3]
        count = int(lookup(index))
        added = lookup(row).unsqueeze(0)
        return {stack: torch.cat([lookup(stack)[:count], added]) if count else added}
    op = _operator(name)
    arguments = op._schema.arguments
    outs = [argument for argument in arguments if argument.is_out]
    given = call.args[: len(arguments) - len(outs)]
    args = [
        _argument(plan, slot, argument.type, lookup)
        for slot, argument in zip(given, arguments, strict=False)
    ]
    positional = [a for a, s in zip(args, arguments, strict=False) if not s.kwarg_only]
    keywords = {s.name: a for a, s in zip(args, arguments, strict=False) if s.kwarg_only}
    if op._schema.is_mutable and not outs:
        return _changed(name, results[0], positional, keywords)
    if any(isinstance(plan.values[slot].val, (TensorList, type(None))) for slot in results):
        raise NoOperatorError(f"{name} has results that are not tensors")
    made = [_empty(_tensor(plan, slot), shapes.get(slot), wide) for slot in results]
    if len(outs) == 1 and "List" in str(outs[0].type):
        keywords[outs[0].name] = made
    elif outs:
        keywords |= {out.name: tensor for out, tensor in zip(outs, made, strict=True)}
    try:
        with torch.no_grad():
            returned = op(*positional, **keywords)
    except Exception as error:
        line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise NoOperatorError(f"torch's {name} raised {type(error).__name__}: {line}") from error
    if not outs:
        made = list(returned) if isinstance(returned, tuple) else [returned]
    return dict(zip(results, made, strict=True))


def _changed(
    name: str, slot: int, positional: Sequence[Any], keywords: Mapping[str, Any]
) -> dict[int, Any]:
    """Return what an operator that writes to its first argument makes of it."""
    op = _operator(name)
    written = positional[0].clone()
    with torch.no_grad():
        op(written, *positional[1:], **keywords)
    return {slot: written}


def _empty(value: WireTensor, shape: Sequence[int] | None, wide: bool) -> Tensor:
    dtype = dtype_of(value)
    sizes = list(value.sizes if shape is None else shape)
    return torch.empty(sizes, dtype=torch.float64 if wide and dtype.is_floating_point else dtype)


def _tensor(plan: ExecutionPlan, slot: int) -> WireTensor:
    value = plan.values[slot].val
    if not isinstance(value, WireTensor):
        raise NoOperatorError("a result is not a tensor")
    return value


def _operator(name: str) -> OpOverload:
    space, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    own = space == NAMESPACE and overload == "out"  # whose out variants have a name alone
    try:
        overloads = getattr(getattr(torch.ops, space), packet)
        chosen = "default" if own else overload or "default"
        if chosen not in overloads.overloads() and chosen.endswith("out"):
            chosen = chosen[:-3].rstrip("_") or "default"  # which has no out variant in torch
        found = getattr(overloads, chosen)
    except (AttributeError, RuntimeError) as error:
        raise NoOperatorError(f"torch has no operator {name}") from error
    if torch.Tag.nondeterministic_seeded in found.tags:
        raise NoOperatorError(f"{name} draws random numbers")
    if not isinstance(found, OpOverload):
        raise NoOperatorError(f"torch has no operator {name}")
    return found


def _argument(plan: ExecutionPlan, slot: int, kind: Any, lookup: Callable[[int], Any]) -> Any:
    value = plan.values[slot].val
    text = str(kind)
    if isinstance(value, WireTensor):
        return lookup(slot)
    if isinstance(value, (Int, Double, Bool)):
        number = lookup(slot)
        if "MemoryFormat" in text:
            return FORMATS.get(int(number))
        if "ScalarType" in text:
            return _dtype(int(number))
        return number
    if isinstance(value, IntList):
        return [lookup(item) for item in value.items]
    if isinstance(value, (BoolList, DoubleList)):
        return list(value.items)
    if isinstance(value, TensorList):
        return [lookup(item) for item in value.items]
    if isinstance(value, OptionalTensorList):
        return [None if item < 0 else lookup(item) for item in value.items]
    return value.string_val if isinstance(value, String) else None


def _dtype(number: int) -> torch.dtype | None:
    found = getattr(torch, DTYPES[number][0], None) if number in DTYPES else None
    return found if isinstance(found, torch.dtype) else None
