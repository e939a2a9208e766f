# SPDX-License-Identifier: BSD-3-Clause
"""Rows by their number, and the number of the largest value: TOSA's indices are int32."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from etx_exir.ir.dim_order import TO_COPY
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.table import FLOATS, Profile, arguments, integers, lowers, static_shape
from etx_backend_arm.quantized import DEQUANTIZE, Look, affine, weight_of
from etx_backend_arm.tosa import DType, NanPropagationMode, Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
EMBEDDING = aten.embedding.default
INDEX_SELECT = aten.index_select.default
INDEX = aten.index.Tensor
ARGMAX = aten.argmax.default
COPY = TO_COPY
"""What makes another type of the same numbers."""


def index_of(node: Node) -> Any:
    """Return the argument that holds indices: a node."""
    if node.target is EMBEDDING:
        return node.args[1]
    if node.target is INDEX_SELECT:
        return node.args[2]
    return next((each for each in node.args[1] if each is not None), None)  # type: ignore[union-attr]


def int32_index(node: Node, look: Look) -> str | None:
    """Indices are int32, or constants."""
    index = index_of(node)
    if look(index) is not None or index.meta["val"].dtype == torch.int32:
        return None
    return f"{index.name}, the indices of {node.name}, are {index.meta['val'].dtype}, TOSA's int32"


def one_constant_index(node: Node, look: Look) -> str | None:
    """It picks by one constant of rank 1, which may count from behind."""
    given: Any = node.args[1]
    indices = [each for each in given if each is not None]
    held = look(indices[0]) if len(indices) == 1 else None
    if held is None or held.dim() != 1 or held.dtype not in (torch.int32, torch.int64):
        return f"{node.name} picks by other than one constant list of numbers"
    return None


def constant_table(node: Node, look: Look) -> str | None:
    """The table is a constant: floats, or int8 with scales."""
    table: Any = node.args[0]
    held = look(table)
    if (held is not None and held.dtype in FLOATS) or weight_of(table, look) is not None:
        return None
    return f"{table.name}, the table of {node.name}, is not a constant"


def float_rows(node: Node, look: Look) -> str | None:
    """What is picked is floats."""
    dtype = node.meta["val"].dtype
    return None if dtype in FLOATS else f"{node.name} is {dtype}, GATHER takes floats"


def _numbers(call: Call, index: Node, length: int) -> tuple[str, int]:
    """Return indices as (1, count), and their count."""
    held = call.values.parameter(index)
    if held is not None:
        count = held.numel()
        numbers = torch.where(held < 0, held + length, held).reshape(1, count)
        return call.values.constant(call.fresh("indices"), numbers.to(torch.int32)), count
    count = prod(index.meta["val"].shape)
    return call.reshape(call.values.get(index), [1, count], "indices"), count


def _gather(call: Call, value: str, index: Node, sizes: Sequence[int], dim: int) -> str:
    """Return rows of a value along a dimension, in the shape of the result."""
    before, length = prod(sizes[:dim]), sizes[dim]
    after = prod(sizes[dim + 1 :])
    rows = call.reshape(value, [before, length, after], "rows")
    numbers, count = _numbers(call, index, length)
    if before > 1:
        times = call.graph.shape_constant([before, 1])
        numbers = call.emit(
            Op.TILE, fbs.TileAttribute(), [numbers, times], "indices_of_all", [before, count]
        )
    made, dtype = call.fresh("picked"), call.graph.dtype(rows)
    shape = [before, count, after]
    operands = [rows, numbers]
    name = call.graph.operator(Op.GATHER, fbs.GatherAttribute(), operands, made, shape, dtype)
    return call.reshape(name, call.shape, "as")


@lowers(EMBEDDING, when=(integers, static_shape, constant_table, int32_index), profile=Profile.INT)
def rows_int8(values: Values, node: Node) -> None:
    """Lower to GATHER of a table that is quantized as the result is."""
    call = Call(values, node, "nchw")
    table, step = _reals(values, node.args[0]), call.step
    assert step is not None
    form = step.form
    bounds = (form.low, form.high, form.dtype)
    made = torch.ops.quantized_decomposed.quantize_per_tensor(
        table.float(), form.scale, form.zero_point, *bounds
    )
    value = values.constant(call.fresh("table"), made)
    call.same(_gather(call, value, index_of(node), list(table.shape), 0))


def _reals(values: Values, node: Any) -> torch.Tensor:
    held = values.parameter(node)
    if held is not None:
        return held.detach()
    weight = values.weight(node)
    shape = [1] * weight.integers.dim()
    if weight.axis is not None:
        shape[weight.axis] = -1
    return weight.integers * weight.scales.reshape(shape)


@lowers(EMBEDDING, when=(float_rows, static_shape, constant_table, int32_index))
def rows(values: Values, node: Node) -> None:
    """Lower to GATHER."""
    call = Call(values, node, "nchw")
    table = _reals(values, node.args[0]).to(node.meta["val"].dtype)
    value = values.constant(call.fresh("table"), table)
    call.done(_gather(call, value, index_of(node), list(table.shape), 0))


def picked(values: Values, node: Node) -> None:
    """Lower to GATHER along a dimension."""
    call = Call(values, node, "nchw")
    source, index = call.activations[0], index_of(node)
    sizes = list(source.meta["val"].shape)
    if node.target is INDEX_SELECT:
        dim = arguments(node)[1] % len(sizes)
    else:
        dim = list(node.args[1]).index(index)  # type: ignore[arg-type]
    call.moved(_gather(call, call.get(source), index, sizes, dim))


for target, check in ((INDEX_SELECT, int32_index), (INDEX, one_constant_index)):
    lowers(target, when=(integers, static_shape, check), profile=Profile.INT)(picked)
    lowers(target, when=(float_rows, static_shape, check))(picked)


def narrowed_only(node: Node, look: Look) -> str | None:
    """What reads it makes int32 of it."""
    if all(each.target is COPY and each.meta["val"].dtype == torch.int32 for each in node.users):
        return None
    return f"{node.name} is int64, which TOSA has not: it makes int32"


def along_one_dim(node: Node, look: Look) -> str | None:
    """It is along a dimension."""
    return None if arguments(node)[1] is not None else f"{node.name} is over all dimensions"


def of_integers(node: Node, look: Look) -> str | None:
    """What is compared is dequantized."""
    source: Any = node.args[0]
    if source.target is DEQUANTIZE and affine(source) is not None:
        return None
    return f"{source.name}, the input of {node.name}, is not dequantized from integers"


def of_floats(node: Node, look: Look) -> str | None:
    """What is compared is floats."""
    dtype = node.args[0].meta["val"].dtype  # type: ignore[union-attr]
    return None if dtype in FLOATS else f"{node.name} compares {dtype}"


@lowers(ARGMAX, when=(of_integers, static_shape, along_one_dim, narrowed_only), profile=Profile.INT)
@lowers(ARGMAX, when=(of_floats, static_shape, along_one_dim, narrowed_only))
def largest_at(values: Values, node: Node) -> None:
    """Lower to ARGMAX, the first of equal values."""
    source, dim, _ = arguments(node)
    value, graph = values.get(source), values.graph
    shape = graph.shape(value)
    axis = dim % len(shape)
    attribute = fbs.ArgMaxAttribute(axis=axis, nan_mode=NanPropagationMode.PROPAGATE)
    made = graph.operator(
        Op.ARGMAX,
        attribute,
        [value],
        f"{node.name}_at",
        [*shape[:axis], *shape[axis + 1 :]],
        DType.INT32,
    )
    values.define(node, graph.reshape(made, values.shape(node), node.name))


def argmax_of(node: Node) -> Node | None:
    """Return what finds the largest value, of a node that makes int32 of its number."""
    source = node.args[0] if node.target is COPY else None
    if isinstance(source, Node) and source.target is ARGMAX:
        return source if node.meta["val"].dtype == torch.int32 else None
    return None


def of_argmax(node: Node, look: Look) -> str | None:
    """It makes int32 of the number of the largest value."""
    if argmax_of(node) is not None:
        return None
    source: Any = node.args[0]
    return f"{node.name} makes {node.meta['val'].dtype} of {source.meta['val'].dtype}"


def narrowed(values: Values, node: Node) -> None:
    """Lower to nothing: the number is int32 already."""
    source: Any = node.args[0]
    values.define(node, values.get(source))


lowers(COPY, when=(static_shape, of_argmax), profile=Profile.INT)(narrowed)
lowers(COPY, when=(static_shape, of_argmax))(narrowed)
