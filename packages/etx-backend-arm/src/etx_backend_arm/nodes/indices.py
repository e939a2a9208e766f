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
INDEX_PUT = aten.index_put.default
GATHER = aten.gather.default
INDEXING = (EMBEDDING, GATHER, INDEX, INDEX_PUT, INDEX_SELECT)
"""Operators that read numbers of rows."""
ARGMAX = aten.argmax.default
COPY = TO_COPY
"""What makes another type of the same numbers."""


MOST_PLACES = 2**24
"""Numbers of rows are float32 on the way, where integers are not computed."""


def indices_of(node: Node) -> list[Node]:
    """Return the nodes of all indices."""
    given: Any = node.args[2 if node.target in (INDEX_SELECT, GATHER) else 1]
    return [each for each in given if each is not None] if isinstance(given, list) else [given]


def int32_index(node: Node, look: Look) -> str | None:
    """Indices are int32, or constants."""
    for index in indices_of(node):
        dtype = index.meta["val"].dtype
        if dtype == torch.bool:
            return f"{index.name}, an index of {node.name}, holds truths, GATHER takes numbers"
        if look(index) is None and dtype != torch.int32:
            return f"{index.name}, the indices of {node.name}, are {dtype}, TOSA's int32"
    return None


def few_places(node: Node, look: Look) -> str | None:
    """Places among the dimensions that are indexed are exact in float32, or known."""
    count = prod(node.args[0].meta["val"].shape)  # type: ignore[union-attr]
    if count <= MOST_PLACES or all(look(each) is not None for each in indices_of(node)):
        return None
    return f"{node.name} picks of {count} elements, at most {MOST_PLACES} are told apart"


def float_table(node: Node, look: Look) -> str | None:
    """The table is of floats: of a constant, of one that is quantized, or of another operator's."""
    table: Any = node.args[0]
    if table.target is not DEQUANTIZE or weight_of(table, look) is not None:
        return None
    return f"{table.name}, the table of {node.name}, is quantized and no constant"


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


def integer_rows(node: Node, look: Look) -> str | None:
    """What is picked is plain integers, or truths."""
    dtype = node.meta["val"].dtype
    known = (torch.bool, torch.int8, torch.int16, torch.int32)
    return None if dtype in known else f"{node.name} is {dtype}, GATHER takes int8, int16, int32"


Index = Node | torch.Tensor
"""What holds numbers of rows; tensors are constants."""


def _constant(held: torch.Tensor, length: int) -> torch.Tensor:
    return torch.where(held < 0, held + length, held)


def held_numbers(indices: Sequence[Index], sizes: Sequence[int], look: Look) -> torch.Tensor | None:
    """Return places among dimensions of these sizes, where no index is an activation."""
    total = torch.zeros((), dtype=torch.int64)
    for i, each in enumerate(indices):
        held = each if isinstance(each, torch.Tensor) else look(each)
        if held is None:
            return None
        total = total + _constant(held.long(), sizes[i]) * prod(sizes[i + 1 :])
    return total


def _sizes_of(index: Index) -> list[int]:
    return list(index.meta["val"].shape if isinstance(index, Node) else index.shape)


def index_shape(indices: Sequence[Index]) -> list[int]:
    """Return the shape that indices have together."""
    return _broadcast([_sizes_of(each) for each in indices])


def _broadcast(shapes: Sequence[Sequence[int]]) -> list[int]:
    return list(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]


def numbers(call: Call, indices: Sequence[Index], sizes: Sequence[int]) -> tuple[str, int]:
    """Return places among dimensions of these sizes as (1, count), and their count."""
    shape, look = index_shape(indices), call.values.parameter
    count, strides = prod(shape), [prod(sizes[i + 1 :]) for i in range(len(sizes))]
    held = [each if isinstance(each, torch.Tensor) else look(each) for each in indices]
    known = [
        _constant(each, size) * stride
        for each, size, stride in zip(held, sizes, strides, strict=True)
        if each is not None
    ]
    total: str | None = None
    if known:
        summed = sum(known[1:], known[0]).expand(_broadcast([each.shape for each in known]))
        rank = [1] * (len(shape) - summed.dim()) + list(summed.shape)
        places = summed.contiguous().reshape(rank or [1]).to(torch.int32)
        total = call.values.constant(call.fresh("indices"), places)
    for i, each in enumerate(indices):
        if held[i] is not None or isinstance(each, torch.Tensor):
            continue
        sizes_of = _sizes_of(each)
        value = call.values.get(each)
        value = call.reshape(
            value, [1] * (len(shape) - len(sizes_of)) + sizes_of or [1], f"index_{i}"
        )
        if call.node.target in (INDEX, INDEX_PUT):
            value = _from_the_end(call, value, sizes[i], f"index_{i}")
        total = _added(call, total, value, strides[i], f"places_{i}")
    assert total is not None
    total = call.cast(total, DType.INT32, "places_in_int32")
    return _whole(call, total, shape, count), count


def kind_of(call: Call) -> DType:
    """Return the type in which places are computed: int32, of which the profile FP has little."""
    is_float = call.step is None and call.node.meta["val"].dtype in FLOATS
    return DType.FP32 if is_float else DType.INT32


def _from_the_end(call: Call, value: str, size: int, suffix: str) -> str:
    """Return numbers of rows of which those below zero count from the end."""
    graph, kind = call.graph, kind_of(call)
    value = call.cast(value, kind, f"{suffix}_as")
    shape, rank = graph.shape(value), len(graph.shape(value))
    zero, length = (call.values.number(each, rank, kind) for each in (0, size))
    is_below, attribute = call.fresh(f"{suffix}_is_below"), fbs.GreaterAttribute()
    graph.operator(Op.GREATER, attribute, [zero, value], is_below, shape, DType.BOOL)
    counted = call.emit(Op.ADD, fbs.AddAttribute(), [value, length], f"{suffix}_counted", shape)
    made, given = call.fresh(f"{suffix}_from_begin"), [is_below, counted, value]
    return graph.operator(Op.SELECT, fbs.SelectAttribute(), given, made, shape, kind)


def _added(call: Call, total: str | None, value: str, stride: int, suffix: str) -> str:
    """Return ``total`` and ``stride`` times a value: int32, by way of floats in the profile FP."""
    graph, kind = call.graph, kind_of(call)
    if total is None and stride == 1:
        return value
    made = call.cast(value, kind, f"{suffix}_as")
    if stride != 1:
        shape = graph.shape(made)
        factor = call.values.number(stride, len(shape), kind)
        made = graph.multiply(made, factor, call.fresh(f"{suffix}_times"), shape)
    if total is not None:
        first = call.cast(total, kind, f"{suffix}_before")
        shape = [max(pair) for pair in zip(graph.shape(first), graph.shape(made), strict=True)]
        made = call.emit(Op.ADD, fbs.AddAttribute(), [first, made], f"{suffix}_sum", shape)
    return call.cast(made, DType.INT32, suffix)


def _whole(call: Call, value: str, shape: list[int], count: int) -> str:
    """Return places as (1, count), repeated where others have more of them."""
    sizes = call.graph.shape(value)
    if prod(sizes) != count:
        times = [made // given for made, given in zip(shape, sizes, strict=True)]
        operands = [value, call.graph.shape_constant(times)]
        value = call.emit(Op.TILE, fbs.TileAttribute(), operands, "indices_of_each", shape)
    return call.reshape(value, [1, count], "indices_in_row")


def of_all(call: Call, value: str, before: int) -> str:
    """Return places, (1, count), once for each of what lies before."""
    if before == 1:
        return value
    times = call.graph.shape_constant([before, 1])
    shape = [before, call.graph.shape(value)[1]]
    return call.emit(Op.TILE, fbs.TileAttribute(), [value, times], "indices_of_all", shape)


def _gather(call: Call, value: str, indices: Sequence[Index], first: int) -> str:
    """Return what indices of dimensions from ``first`` on pick, in the shape of the result.

    Truths are numbers on the way.
    """
    if call.graph.dtype(value) == DType.BOOL:
        found = _gather(call, call.cast(value, DType.INT8, "bytes"), indices, first)
        return call.cast(found, DType.BOOL, "truths")
    sizes, behind = call.graph.shape(value), first + len(indices)
    before, after = prod(sizes[:first]), prod(sizes[behind:])
    rows = call.reshape(value, [before, prod(sizes[first:behind]), after], "rows")
    places, count = numbers(call, indices, sizes[first:behind])
    made, dtype = call.fresh("picked"), call.graph.dtype(rows)
    shape = [before, count, after]
    operands = [rows, of_all(call, places, before)]
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
    call.same(_gather(call, value, indices_of(node), 0))


def _reals(values: Values, node: Any) -> torch.Tensor:
    held = values.parameter(node)
    if held is not None:
        return held.detach()
    weight = values.weight(node)
    shape = [1] * weight.integers.dim()
    if weight.axis is not None:
        shape[weight.axis] = -1
    return weight.integers * weight.scales.reshape(shape)


@lowers(EMBEDDING, when=(float_rows, static_shape, float_table, int32_index))
def rows(values: Values, node: Node) -> None:
    """Lower to GATHER."""
    call = Call(values, node, "nchw")
    table: Any = node.args[0]
    if constant_table(node, values.parameter) is None:
        held = _reals(values, table).to(node.meta["val"].dtype)
        value = values.constant(call.fresh("table"), held)
    else:
        value = call.get(table)
    call.done(_gather(call, value, indices_of(node), 0))


def picked(values: Values, node: Node) -> None:
    """Lower to GATHER along dimensions: those side by side, or in front, as PyTorch puts them."""
    call = Call(values, node, "nchw")
    value = call.get(call.operands[0])
    rank = len(call.graph.shape(value))
    if node.target is INDEX_SELECT:
        dims = [arguments(node)[1] % rank]
    else:
        given: Any = node.args[1]
        dims = [i for i, each in enumerate(given) if each is not None]
    if not side_by_side(dims):
        perms = [*dims, *(i for i in range(rank) if i not in dims)]
        shape = [call.graph.shape(value)[i] for i in perms]
        dtype = call.graph.dtype(value)
        value = call.graph.transpose(value, perms, call.fresh("in_front"), shape, dtype)
        dims = list(range(len(dims)))
    call.moved(_gather(call, value, indices_of(node), dims[0]))


def side_by_side(dims: Sequence[int]) -> bool:
    """Tell whether dimensions follow each other: what indices of others make is in front."""
    return list(dims) == list(range(dims[0], dims[0] + len(dims)))


def along(node: Node) -> list[Index]:
    """Return what picks the elements of a GATHER one by one: its index, and places of the rest."""
    _, dim, index = arguments(node)[:3]
    shape = index.meta["val"].shape
    made: list[Index] = [_places(i, len(shape), size) for i, size in enumerate(shape)]
    made[dim % len(shape)] = index
    return made


def _places(dim: int, rank: int, size: int) -> torch.Tensor:
    return torch.arange(size).reshape([size if i == dim else 1 for i in range(rank)])


def gathered(values: Values, node: Node) -> None:
    """Lower to GATHER among all elements."""
    call = Call(values, node, "nchw")
    call.moved(_gather(call, call.get(call.operands[0]), along(node), 0))


for target, emit in ((INDEX_SELECT, picked), (INDEX, picked), (GATHER, gathered)):
    lowers(target, when=(integers, static_shape, int32_index), profile=Profile.INT)(emit)
    lowers(target, when=(integer_rows, static_shape, int32_index), profile=Profile.INT)(emit)
    lowers(target, when=(float_rows, static_shape, int32_index, few_places))(emit)


def narrowed_only(node: Node, look: Look) -> str | None:
    """What reads it makes int32 of it."""
    if all(each.target is COPY and each.meta["val"].dtype == torch.int32 for each in node.users):
        return None
    return f"{node.name} is int64, which TOSA has not: it makes int32"


def along_one_dim(node: Node, look: Look) -> str | None:
    """It is along a dimension."""
    return None if arguments(node)[1] is not None else f"{node.name} is over all dimensions"


def of_integers(node: Node, look: Look) -> str | None:
    """What is compared is dequantized, or int8 as it is."""
    source: Any = node.args[0]
    if source.target is DEQUANTIZE and affine(source) is not None:
        return None
    if source.meta["val"].dtype == torch.int8:
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
