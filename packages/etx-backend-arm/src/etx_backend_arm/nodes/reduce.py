# SPDX-License-Identifier: BSD-3-Clause
"""Sums, products, means, and the largest and smallest along dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.table import (
    Profile,
    arguments,
    floating,
    integers,
    lowers,
    static_shape,
)
from etx_backend_arm.quantized import Look, find_step
from etx_backend_arm.tosa import DType, NanPropagationMode, Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
PROPAGATE = NanPropagationMode.PROPAGATE
MOST, MOST_WIDE = 2**22, 2**15
"""Sums of so many int8, and of so many int16, stay in int32."""


def dims_of(node: Node) -> list[int]:
    """Return the dimensions that an operator reduces."""
    rank = node.args[0].meta["val"].dim()  # type: ignore[union-attr]
    given = arguments(node)[1]
    dims = [given] if isinstance(given, int) else list(given or range(rank))
    return sorted(dim % rank for dim in dims)


def reduce(call: Call, op: Op, value: str, dims: Sequence[int], suffix: str) -> str:
    """Reduce along dimensions, which stay with size 1."""
    for dim in dims:
        if call.graph.shape(value)[dim] == 1:
            continue
        if op is Op.REDUCE_SUM:
            attribute: object = fbs.ReduceSumAttribute(axis=dim)
        elif op is Op.REDUCE_PRODUCT:
            attribute = fbs.ReduceProductAttribute(axis=dim)
        elif op is Op.REDUCE_MAX:
            attribute = fbs.ReduceMaxAttribute(axis=dim, nan_mode=PROPAGATE)
        else:
            attribute = fbs.ReduceMinAttribute(axis=dim, nan_mode=PROPAGATE)
        shape = call.graph.shape(value)
        shape[dim] = 1
        value = call.emit(op, attribute, [value], f"{suffix}_{dim}", shape)
    return value


def few_enough(node: Node, look: Look) -> str | None:
    """The sum of all elements stays in int32."""
    sizes = node.args[0].meta["val"].shape  # type: ignore[union-attr]
    found, count = find_step(node, look), prod(sizes[dim] for dim in dims_of(node))
    most = MOST_WIDE if not isinstance(found, str) and found.form.is_wide else MOST
    return None if count <= most else f"{node.name} adds {count} elements, at most {most} fit int32"


def _total(values: Values, node: Node, is_mean: bool) -> None:
    call = Call(values, node, "nchw")
    (source,) = call.activations
    dims, value = dims_of(node), call.get(source)
    count = prod(call.graph.shape(value)[dim] for dim in dims) if is_mean else 1
    if call.step is not None:
        form = call.form(source)
        value = call.wide(value, 1.0, form.zero_point, "wide")
        total = reduce(call, Op.REDUCE_SUM, value, dims, "sum")
        call.done(call.reshape(total, call.shape, "as"), form.scale / count)
        return
    total = reduce(call, Op.REDUCE_SUM, call.as_float32(value, "wider"), dims, "sum")
    total = call.reshape(total, call.shape, "as")
    if is_mean:
        share = call.number(1 / count, len(call.shape), total)
        total = call.graph.multiply(total, share, call.fresh("mean"), call.shape)
    call.done(total)


@lowers(aten.sum.dim_IntList, when=(integers, static_shape, few_enough), profile=Profile.INT)
@lowers(aten.sum.dim_IntList, when=(floating, static_shape))
def total(values: Values, node: Node) -> None:
    """Lower to REDUCE_SUM."""
    _total(values, node, is_mean=False)


@lowers(aten.mean.dim, when=(integers, static_shape, few_enough), profile=Profile.INT)
@lowers(aten.mean.dim, when=(floating, static_shape))
def mean(values: Values, node: Node) -> None:
    """Lower to REDUCE_SUM and a factor."""
    _total(values, node, is_mean=True)


@lowers(aten.prod.dim_int, when=(floating, static_shape))
@lowers(aten.prod.default, when=(floating, static_shape))
def times(values: Values, node: Node) -> None:
    """Lower to REDUCE_PRODUCT, which only floats have."""
    call = Call(values, node, "nchw")
    value = call.as_float32(call.get(call.activations[0]), "wider")
    rank = len(call.graph.shape(value))
    dims = dims_of(node) if node.target is aten.prod.dim_int else list(range(rank))
    made = reduce(call, Op.REDUCE_PRODUCT, value, dims, "product")
    call.done(call.reshape(made, call.shape, "as"))


def _extreme(values: Values, node: Node, op: Op) -> None:
    call = Call(values, node, "nchw")
    value, dims = call.get(call.activations[0]), dims_of(node)
    if op is Op.REDUCE_MIN and values.narrow_tables and call.graph.dtype(value) == DType.INT8:
        turned = _turned(call, value, "turned")
        value = _turned(call, reduce(call, Op.REDUCE_MAX, turned, dims, "extreme"), "back")
    else:
        value = reduce(call, op, value, dims, "extreme")
    call.moved(call.reshape(value, call.shape, "as"))


def _turned(call: Call, value: str, suffix: str) -> str:
    """Return int8 in the reverse order, -1 - x: Vela 5.2.0 makes wrong commands of REDUCE_MIN."""
    entries = call.values.constant("reverse_order", torch.arange(127, -129, -1).to(torch.int8))
    shape = call.graph.shape(value)
    return call.emit(Op.TABLE, fbs.TableAttribute(), [value, entries], suffix, shape)


@lowers(aten.amax.default, when=(integers, static_shape), profile=Profile.INT)
@lowers(aten.amax.default, when=(floating, static_shape))
def largest(values: Values, node: Node) -> None:
    """Lower to REDUCE_MAX."""
    _extreme(values, node, Op.REDUCE_MAX)


@lowers(aten.amin.default, when=(integers, static_shape), profile=Profile.INT)
@lowers(aten.amin.default, when=(floating, static_shape))
def smallest(values: Values, node: Node) -> None:
    """Lower to REDUCE_MIN."""
    _extreme(values, node, Op.REDUCE_MIN)
