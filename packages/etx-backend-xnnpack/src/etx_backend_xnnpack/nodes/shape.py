# SPDX-License-Identifier: BSD-3-Clause
"""Operators that move elements: other sizes, other orders, pieces, copies, borders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from etx_exir.ir.constants import Constants
from etx_exir.ir.dim_order import CLONE, TO_COPY
from etx_exir.ir.ops import PERMUTATIONS, RESHAPES, arguments, permutation
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from etx_backend_xnnpack import layout
from etx_backend_xnnpack._generated.xnnpack import (
    Concatenate,
    ConstantPad,
    Operator,
    ResizeBilinear2d,
    Slice,
)
from etx_backend_xnnpack.builder import NONE, Affine
from etx_backend_xnnpack.layout import NHWC, Order, plain
from etx_backend_xnnpack.nodes.attended import attended, is_parted_mask
from etx_backend_xnnpack.nodes.means import unknown
from etx_backend_xnnpack.nodes.scales import covers
from etx_backend_xnnpack.nodes.table import Work, lowers, one_symbol, rank, shape_of
from etx_backend_xnnpack.quantized import argument
from etx_backend_xnnpack.values import Stored, Values

aten = torch.ops.aten

ALIGN_CORNERS = 8
MOST_INPUTS = 5


def form_of(values: Values, node: Any) -> Stored:
    """Return an int8 form of a node where it has one, else one in the builder's dtype."""
    return values.quantized(node) or values.real(node)


@lowers(*RESHAPES, when=[one_symbol], work=Work.MOVES, int8=True)
def reshape(values: Values, node: Node) -> None:
    """Emit a reshape where the stored sizes change."""
    source: Any = node.args[0]
    form, sizes, new = form_of(values, source), values.sizes(source), values.sizes(node)
    order = layout.reshaped(sizes, form.order, new)
    number = form.id
    if order is None:
        number, order = values.get(source, None, form.affine), plain(len(new))
        form = Stored(number, plain(len(sizes)), form.affine)
    target = layout.ordered(new, order)
    if target != layout.ordered(sizes, form.order):
        number = values.shaped(number, target, form.affine)
    values.define(node, number, order, form.affine)


@lowers(*PERMUTATIONS, work=Work.MOVES, int8=True, note="no node: a reader moves what it needs")
def permute(values: Values, node: Node) -> None:
    """Emit nothing: the same value has another order."""
    source: Any = node.args[0]
    form = form_of(values, source)
    moved = permutation(node)
    order = tuple(moved.index(dim) for dim in form.order)
    values.define(node, form.id, order, form.affine)


@lowers(
    CLONE,
    TO_COPY,
    aten.alias_copy.default,
    aten.clone.default,
    work=Work.MOVES,
    int8=True,
)
def copy(values: Values, node: Node) -> None:
    """Emit nothing, or a conversion to another float."""
    form = form_of(values, node.args[0])
    values.define(node, form.id, form.order, form.affine)


def cut(
    values: Values, form: Stored, sizes: Sequence[Any], dim: int, start: int, length: Any
) -> int:
    """Add a node that takes a range of one dimension; a symbolic length is all of it."""
    inner = layout.ordered(sizes, form.order)
    place = form.order.index(dim)
    offsets = [0] * len(inner)
    lengths = [size if isinstance(size, int) else 0 for size in inner]
    offsets[place] = start
    lengths[place] = length if isinstance(length, int) else 0
    inner[place] = length
    target = values.builder.value(inner, form.affine)
    values.builder.node(
        Operator.Slice,
        Slice(rank=len(inner), offsets=offsets, sizes=lengths, input_id=form.id, output_id=target),
    )
    return target


def bounds(node: Node) -> tuple[int, Any, Any, int]:
    """Return dimension, start, end and step of a slice; negative places are counted on."""
    sizes = shape_of(node.args[0])
    dim = argument(node, "dim") % len(sizes)
    size = sizes[dim]
    start, end = argument(node, "start") or 0, argument(node, "end")
    end = size if end is None else end

    def place(at: Any) -> Any:
        if not isinstance(at, int) or not isinstance(size, int):
            return at
        return min(max(at + size if at < 0 else at, 0), size)

    return dim, place(start), place(end), argument(node, "step")


def known_slice(node: Node, constants: Constants) -> str | None:
    """Require numbers, and of a symbolic dimension a known number of elements, or all."""
    dim, start, end, step = bounds(node)
    size = shape_of(node.args[0])[dim]
    if not isinstance(start, int) or start < 0:
        return "it starts at a place that is known at run time only"
    if isinstance(size, int):
        if not isinstance(end, int):
            return "it ends at a place that is known at run time only"
        if step != 1 and (size % step or start >= step or end <= size - step + start):
            return f"steps of {step} that do not divide {size}"
        return one_symbol(node, constants) if step != 1 else None
    if step != 1:
        return "steps over a symbolic size"
    length = shape_of(node)[dim]
    if isinstance(length, int) or (start == 0 and statically_known_true(length == size)):
        return None
    return "how much it takes is known at run time only"


@lowers(aten.slice_copy.Tensor, when=[known_slice], work=Work.MOVES, int8=True)
def slice_(values: Values, node: Node) -> None:
    """Emit a slice; steps are a dimension of their own."""
    source: Any = node.args[0]
    dim, start, _, step = bounds(node)
    sizes, form = values.sizes(source), form_of(values, source)
    length = values.sizes(node)[dim]
    if step == 1:
        number = cut(values, form, sizes, dim, start, length)
        values.define(node, number, form.order, form.affine)
        return
    split = [math.prod(sizes[:dim]) * sizes[dim] // step, step, math.prod(sizes[dim + 1 :])]
    number = values.shaped(values.get(source, None, form.affine), split, form.affine)
    number = cut(values, Stored(number, plain(3), form.affine), split, 1, start, 1)
    number = values.shaped(number, values.sizes(node), form.affine)
    values.define(node, number, plain(len(sizes)), form.affine)


def known_index(node: Node, constants: Constants) -> str | None:
    """Require an index that is a number."""
    dim, index = argument(node, "dim"), argument(node, "index")
    size = shape_of(node.args[0])[dim]
    if not isinstance(index, int) or (index < 0 and not isinstance(size, int)):
        return "its index is known at run time only"
    return None


@lowers(aten.select_copy.int, when=[known_index, one_symbol], work=Work.MOVES, int8=True)
def select(values: Values, node: Node) -> None:
    """Emit a slice and a reshape."""
    source: Any = node.args[0]
    sizes, form = values.sizes(source), form_of(values, source)
    dim, index = argument(node, "dim") % len(sizes), argument(node, "index")
    pick(values, node, form, sizes, dim, index + sizes[dim] if index < 0 else index)


def pick(
    values: Values, node: Node, form: Stored, sizes: Sequence[Any], dim: int, index: int
) -> None:
    """Take one index of a dimension, which disappears."""
    number = cut(values, form, sizes, dim, index, 1)
    order = tuple(d - (d > dim) for d in form.order if d != dim)
    left = layout.ordered([s for d, s in enumerate(sizes) if d != dim], order)
    values.define(node, values.shaped(number, left, form.affine), order, form.affine)


def known_parts(node: Node, constants: Constants) -> str | None:
    """Require a dimension of known size, and parts that a reshape can say."""
    sizes = shape_of(node.args[0])
    dim = argument(node, "dim") % len(sizes)
    if not isinstance(sizes[dim], int):
        return "the size that it splits is known at run time only"
    unbound = len(node.meta["val"][0].shape) < len(sizes)
    return "several sizes are symbolic" if unbound and unknown(sizes) > 1 else None


@lowers(
    aten.split_copy.Tensor,
    aten.split_with_sizes_copy.default,
    aten.unbind_copy.int,
    when=[known_parts],
    work=Work.MOVES,
    int8=True,
)
def split(values: Values, node: Node) -> None:
    """Emit a slice for each part that is read."""
    source: Any = node.args[0]
    sizes, form = values.sizes(source), form_of(values, source)
    dim = argument(node, "dim") % len(sizes)
    picks = {user.args[1]: user for user in node.users}
    start = 0
    for index, part in enumerate(node.meta["val"]):
        unbound = len(part.shape) < len(sizes)
        length = 1 if unbound else int(part.shape[dim])
        user = picks.get(index)
        if user is not None:
            values.done.add(user)
            if unbound:
                pick(values, user, form, sizes, dim, index)
            else:
                number = cut(values, form, sizes, dim, start, length)
                values.define(user, number, form.order, form.affine)
        start += length


@lowers(aten.cat.default, work=Work.MOVES, int8=True, note="more than five by nesting")
def cat(values: Values, node: Node) -> None:
    """Emit concatenations of up to five."""
    if len(attended(node)) > 1 or is_parted_mask(node):
        return
    sources: list[Any] = list(node.args[0])  # type: ignore[arg-type]
    rank_ = len(values.sizes(node))
    dim = argument(node, "dim") % rank_
    order = next((values.natural(s) for s in sources if values.forms(s)), plain(rank_))
    int8 = all(values.quantized(source) for source in sources)
    result = values.result(node, quantizes=int8)
    numbers = [values.get(source, order, result.affine) for source in sources]
    lengths = [values.sizes(source)[dim] for source in sources]
    inner = layout.ordered(values.sizes(node), order)
    place = order.index(dim)
    numbers = _nested(values, numbers, lengths, inner, place, result.affine)
    target = values.output(result, order)
    if len(numbers) == 1:
        values.builder.unary(Operator.Copy, numbers[0], target)
    else:
        join(values, numbers, place, target)


@lowers(aten.stack.default, when=[one_symbol], work=Work.MOVES)
def stack(values: Values, node: Node) -> None:
    """Emit reshapes and concatenations."""
    sources: list[Any] = list(node.args[0])  # type: ignore[arg-type]
    sizes = values.sizes(node)
    dim = argument(node, "dim") % len(sizes)
    single = [*sizes[:dim], 1, *sizes[dim + 1 :]]
    numbers = [values.shaped(values.get(source), single) for source in sources]
    numbers = _nested(values, numbers, [1] * len(numbers), sizes, dim, None)
    target = values.output(values.result(node), plain(len(sizes)))
    if len(numbers) == 1:
        values.builder.unary(Operator.Copy, numbers[0], target)
    else:
        join(values, numbers, dim, target)


def _nested(
    values: Values,
    numbers: list[int],
    lengths: list[Any],
    inner: list[Any],
    place: int,
    at: Affine | None,
) -> list[int]:
    """Join five at a time until no more are left."""
    while len(numbers) > MOST_INPUTS:
        parts, sums = [], []
        for first in range(0, len(numbers), MOST_INPUTS):
            some = numbers[first : first + MOST_INPUTS]
            sums.append(sum(lengths[first : first + MOST_INPUTS]))
            if len(some) > 1:
                sizes = [*inner[:place], sums[-1], *inner[place + 1 :]]
                parts.append(join(values, some, place, values.builder.value(sizes, at)))
            else:
                parts += some
        numbers, lengths = parts, sums
    return numbers


def joined(
    values: Values, numbers: list[int], lengths: list[Any], axis: int, sizes: list[Any]
) -> int:
    """Return two or more values one behind the other, `sizes` together."""
    numbers = _nested(values, numbers, lengths, sizes, axis, None)
    return join(values, numbers, axis, values.builder.value(sizes))


def join(values: Values, numbers: list[int], axis: int, target: int) -> int:
    """Add a node that joins two to five values."""
    ids = numbers + [NONE] * (MOST_INPUTS - len(numbers))
    values.builder.node(
        Operator[f"Concatenate{len(numbers)}"],
        Concatenate(
            axis=axis,
            input1_id=ids[0],
            input2_id=ids[1],
            input3_id=ids[2],
            input4_id=ids[3],
            input5_id=ids[4],
            output_id=target,
        ),
    )
    return target


def known_turn(node: Node, constants: Constants) -> str | None:
    """Require shifts of named dimensions of known size."""
    dims: Any = argument(node, "dims")
    if not dims:
        return "it turns all dimensions as one"
    sizes = shape_of(node.args[0])
    if unknown([sizes[dim] for dim in dims]):
        return "it turns a dimension whose size is known at run time only"
    shifts: Any = argument(node, "shifts")
    if not all(isinstance(shift, int) for shift in shifts):
        return "it turns as far as is known at run time only"
    return None


@lowers(aten.roll.default, when=[known_turn], work=Work.MOVES, int8=True, whole=True)
def roll(values: Values, node: Node) -> None:
    """Emit two slices and a concatenation for each dimension."""
    source: Any = node.args[0]
    sizes, form = values.sizes(source), form_of(values, source)
    for dim, shift in zip(argument(node, "dims"), argument(node, "shifts"), strict=True):
        dim %= len(sizes)
        first = -shift % sizes[dim]
        if not first:
            continue
        parts = [
            cut(values, form, sizes, dim, start, length)
            for start, length in ((first, sizes[dim] - first), (0, first))
        ]
        target = values.builder.value(layout.ordered(sizes, form.order), form.affine)
        form = Stored(join(values, parts, form.order.index(dim), target), form.order, form.affine)
    values.define(node, form.id, form.order, form.affine)


def no_crop(node: Node, constants: Constants) -> str | None:
    """Require a border that only adds."""
    pads: Any = node.args[1]
    if not all(isinstance(pad, int) for pad in pads):
        return "its border is known at run time only"
    return "a negative border cuts" if any(pad < 0 for pad in pads) else None


@lowers(aten.constant_pad_nd.default, when=[no_crop], work=Work.MOVES, int8=True)
def pad(values: Values, node: Node) -> None:
    """Emit a node."""
    source: Any = node.args[0]
    pads: Any = node.args[1]
    rank_ = len(values.sizes(node))
    before, behind = [0] * rank_, [0] * rank_
    for i in range(len(pads) // 2):
        before[rank_ - 1 - i], behind[rank_ - 1 - i] = pads[2 * i], pads[2 * i + 1]
    form = values.quantized(source)
    result = values.result(node, quantizes=form is not None)
    order = values.natural(source)
    number = values.get(source, order, result.affine)
    values.builder.node(
        Operator.ConstantPad,
        ConstantPad(
            pre_paddings=layout.ordered(before, order),
            post_paddings=layout.ordered(behind, order),
            padding_value=float(argument(node, "value")),
            input_id=number,
            output_id=values.output(result, order),
        ),
    )


def expands(node: Node, constants: Constants) -> str | None:
    """Require that what is repeated has known sizes."""
    sizes, outer = shape_of(node.args[0]), shape_of(node)
    lead = len(outer) - len(sizes)
    for dim, size in enumerate(outer):
        inner = sizes[dim - lead] if dim >= lead else 1
        if layout.is_one(inner) and not isinstance(size, int):
            return "it repeats as often as is known at run time only"
    return None


@lowers(aten.expand_copy.default, when=[expands], note="a product with ones")
def expand(values: Values, node: Node) -> None:
    """Emit a product with ones."""
    source: Any = node.args[0]
    sizes, outer = values.sizes(source), values.sizes(node)
    lead = len(outer) - len(sizes)
    inner = [1] * lead + sizes
    ones = [
        size if layout.is_one(has) and isinstance(size, int) else 1
        for has, size in zip(inner, outer, strict=True)
    ]
    order: Order = plain(len(outer))
    if not lead:
        order = values.natural(source)
    by = values.builder.constant(torch.ones(layout.ordered(ones, order)))
    target = values.output(values.result(node), order)
    number = values.get(source, order if not lead else None)
    values.builder.binary(Operator.Multiply, number, by, target)


def halves(node: Node, constants: Constants) -> str | None:
    """Require the scale that follows from the sizes."""
    sizes, outer = shape_of(node.args[0])[2:], shape_of(node)[2:]
    if not all(isinstance(size, int) for size in (*sizes, *outer)):
        return "its sizes are known at run time only"
    given = _factors(node)
    for size, out, factor in zip(sizes, outer, given, strict=True):
        if factor is not None and abs(size * factor - out) > 1e-6 * out:
            return f"a scale of {factor}, which {size} to {out} is not"
    return None


def _factors(node: Node) -> list[Any]:
    given = arguments(node)
    if "scale_factors" in given:
        return list(given["scale_factors"] or (None, None))
    return [given["scales_h"], given["scales_w"]]


@lowers(
    aten.upsample_bilinear2d.vec,
    aten.upsample_bilinear2d.default,
    when=[rank(4), halves],
    int8=True,
    whole=True,
)
def upsample_bilinear(values: Values, node: Node) -> None:
    """Emit a node in NHWC, in steps of the result: not where they cut off what it averages."""
    source: Any = node.args[0]
    form, at = values.quantized(source), values.quantizes(node)
    int8 = form and form.affine and at and covers(at, form.affine)
    result = values.result(node, quantizes=bool(int8))
    number = values.get(source, NHWC, result.affine)
    height, width = values.sizes(node)[2:]
    flags = ALIGN_CORNERS if argument(node, "align_corners") else 0
    values.builder.node(
        Operator.ResizeBilinear2d,
        ResizeBilinear2d(
            new_height=height,
            new_width=width,
            input_id=number,
            output_id=values.output(result, NHWC),
            flags=flags,
        ),
    )


def multiples(node: Node, constants: Constants) -> str | None:
    """Require sizes that are a multiple of those before."""
    sizes, outer = shape_of(node.args[0])[2:], shape_of(node)[2:]
    if unknown([*shape_of(node.args[0]), *outer]):
        return "its sizes are known at run time only"
    if any(out % size for size, out in zip(sizes, outer, strict=True)):
        return f"{sizes} to {outer} is not a multiple"
    return halves(node, constants)


@lowers(
    aten.upsample_nearest2d.vec,
    aten.upsample_nearest2d.default,
    when=[rank(4), multiples],
    whole=True,
    note="a product with ones",
)
def upsample_nearest(values: Values, node: Node) -> None:
    """Emit a product with ones between reshapes."""
    number = values.get(node.args[0], NHWC)
    sizes, outer = (layout.ordered(values.sizes(n), NHWC) for n in (node.args[0], node))
    steps = [outer[1] // sizes[1], outer[2] // sizes[2]]
    apart = [sizes[0], sizes[1], 1, sizes[2], 1, sizes[3]]
    ones = torch.ones(1, 1, steps[0], 1, steps[1], 1)
    wide = [sizes[0], sizes[1], steps[0], sizes[2], steps[1], sizes[3]]
    number = values.shaped(number, apart)
    target = values.builder.value(wide)
    values.builder.binary(Operator.Multiply, number, values.builder.constant(ones), target)
    result = values.result(node)
    values.shaped(target, outer, into=values.output(result, NHWC))


MOST_ELEMENTS = 1 << 16


def small_fill(node: Node, constants: Constants) -> str | None:
    """Require known sizes of at most 256 kB."""
    sizes = shape_of(node)
    if unknown(sizes):
        return "its sizes are known at run time only"
    return "it is larger than 256 kB" if math.prod(sizes) > MOST_ELEMENTS else None


@lowers(aten.full.default, when=[small_fill], work=Work.MOVES, note="a constant")
def full(values: Values, node: Node) -> None:
    """Store a constant."""
    number: Any = node.args[1]
    tensor = torch.full(values.sizes(node), float(number))
    values.define(node, values.builder.constant(tensor), plain(tensor.dim()))
