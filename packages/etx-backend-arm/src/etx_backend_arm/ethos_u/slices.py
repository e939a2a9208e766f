# SPDX-License-Identifier: BSD-3-Clause
"""``RESCALE(SLICE(x))`` -> ``RESCALE(SLICE(x) + 0)``, for all that moves and on either side.

``CONV(SLICE(x))`` -> ``CONV(SLICE(x) + 0)`` of several images with padding, of depthwise ones with
padding and several filters a channel, and of transposed ones: the commands that Vela 5.2.0 makes of
it read beside the part.

Sums of int16, too: Vela 5.2.0 takes their RESCALEs in, and scales the operands by another rule.

``PAD(CONV(x))`` -> ``PAD(CONV(x) + 0)`` of transposed convolutions and of depthwise ones with
several filters a channel, which Vela 5.2.0 pads wrongly.

``PAD(RESCALE(PAD(x)))`` -> ``PAD(RESCALE(PAD(x)) + 0)``, also of CONCAT, and of what CONCAT or TILE
made: the one operator that Vela 5.2.0 makes of it reads or writes rows of another length.

Of a RESCALE of int32 and a SLICE, CONCAT, PAD or TILE next to it Vela 5.2.0 makes one elementwise
command that reads or writes the whole tensor in the place of a part, or a part for the whole.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from etx_backend_arm.tosa import DType, Graph, NanPropagationMode, Op, fbs

__all__ = ["keep_slices_apart"]

SUMS = (Op.CONV2D, Op.DEPTHWISE_CONV2D, Op.TRANSPOSE_CONV2D, Op.MATMUL, Op.AVG_POOL2D)
"""What takes a RESCALE in."""
WINDOWS = (
    Op.AVG_POOL2D,
    Op.CONV2D,
    Op.DEPTHWISE_CONV2D,
    Op.MAX_POOL2D,
    Op.TRANSPOSE_CONV2D,
)
"""What can read beside an image; the last always does."""
IN_PARTS = (Op.CONCAT, Op.PAD, Op.TILE)
"""What is written in parts."""
MOVES = (Op.CONCAT, Op.PAD, Op.REVERSE, Op.SLICE, Op.TILE)


def keep_slices_apart(graph: Graph) -> None:
    """Put an operator that changes nothing between a RESCALE of int32 and what moves."""
    operators = list(graph.operators())
    makers = {name: each for each in operators for name in each.outputs}
    apart: dict[str, str] = {}
    changed: list[fbs.TosaOperator] = []
    for each in operators:
        inputs = list(each.inputs)
        for i, source in enumerate(inputs[: None if each.op == Op.CONCAT else 1]):
            if not _must_be_apart(graph, each, source, makers):
                continue
            if source not in apart:
                graph.maker = graph.makers[source]
                apart[source] = f"{source}_apart"
                changed += _unchanged(graph, source, apart[source])
            inputs[i] = apart[source]
        made = fbs.TosaOperator(
            op=each.op, attribute=each.attribute, inputs=inputs, outputs=list(each.outputs)
        )
        changed.append(made)
    graph.replace(changed)


def _must_be_apart(
    graph: Graph, each: fbs.TosaOperator, source: str, makers: dict[str, fbs.TosaOperator]
) -> bool:
    if each.op != Op.RESCALE and each.op not in MOVES and each.op not in WINDOWS:
        return False
    before = _maker(makers, source)
    if each.op in WINDOWS:
        is_part = before is not None and before.op == Op.SLICE
        return is_part and _reads_beside(graph, each)
    others = MOVES if each.op == Op.RESCALE else (Op.RESCALE,)
    if before is None:
        return False
    if each.op == Op.RESCALE and before.op in (Op.ADD, Op.SUB):
        operands = [makers[name].op for name in before.inputs if name in makers]
        return graph.dtype(each.outputs[0]) == DType.INT16 and Op.RESCALE in operands
    if before.op not in others:
        return False
    rescale = before if before.op == Op.RESCALE else each
    if rescale is before and _is_taken_in(before, makers):
        return each.op == Op.PAD and _is_spread(graph, makers[before.inputs[0]])
    if rescale is before and each.op in (Op.CONCAT, Op.PAD):
        made = _maker(makers, before.inputs[0])
        if made is not None and made.op in IN_PARTS:
            return True
    return DType.INT32 in (graph.dtype(rescale.inputs[0]), graph.dtype(rescale.outputs[0]))


def _maker(makers: dict[str, fbs.TosaOperator], name: str) -> fbs.TosaOperator | None:
    """Return what makes a value, in whichever shape."""
    made = makers.get(name)
    while made is not None and made.op == Op.RESHAPE:
        made = makers.get(made.inputs[0])
    return made


def _reads_beside(graph: Graph, each: fbs.TosaOperator) -> bool:
    attribute: Any = each.attribute
    is_one = graph.shape(each.inputs[0])[0] == 1
    if each.op == Op.TRANSPOSE_CONV2D:
        return True
    return any(attribute.pad) and (not is_one or _is_spread(graph, each))


def _is_spread(graph: Graph, each: fbs.TosaOperator) -> bool:
    """Tell whether Vela takes an operator apart, and pads one part of it for the whole."""
    if each.op == Op.DEPTHWISE_CONV2D:
        return graph.shape(each.inputs[1])[3] > 1
    return each.op == Op.TRANSPOSE_CONV2D


def _is_taken_in(rescale: fbs.TosaOperator, makers: dict[str, fbs.TosaOperator]) -> bool:
    source = makers.get(rescale.inputs[0])
    return source is not None and source.op in SUMS


def _unchanged(graph: Graph, value: str, name: str) -> list[fbs.TosaOperator]:
    """Return operators that copy a value: a sum with zero, a table of the integers, a pool."""
    shape, dtype = graph.shape(value), graph.dtype(value)
    if dtype == DType.INT16:
        return _pooled(graph, value, name)
    count = len(graph.operators())
    graph.tensor(name, shape, dtype)
    if dtype == DType.INT8:
        entries = np.arange(-128, 128, dtype=np.int8).tobytes()
        other = graph.constant("every_integer", [256], dtype, entries)
        op: Op = Op.TABLE
        attribute: fbs.TableAttribute | fbs.AddAttribute = fbs.TableAttribute()
    else:
        other = graph.constant(f"zero_{len(shape)}", [1] * len(shape), dtype, bytes(4))
        op, attribute = Op.ADD, fbs.AddAttribute()
    constants = list(graph.operators()[count:])
    made = fbs.TosaOperator(op=op, attribute=attribute, inputs=[value, other], outputs=[name])
    return [*constants, made]


def _pooled(graph: Graph, value: str, name: str) -> list[fbs.TosaOperator]:
    """Return the maxima of windows of one point, as of an image of one row."""
    shape, dtype, count = graph.shape(value), graph.dtype(value), len(graph.operators())
    image = [1, 1, prod(shape[:-1]), shape[-1]]
    pool = fbs.MaxPool2dAttribute(
        kernel=[1, 1], stride=[1, 1], pad=[0, 0, 0, 0], nan_mode=NanPropagationMode.PROPAGATE
    )
    steps = [
        (Op.RESHAPE, fbs.ReshapeAttribute(), image, f"{name}_image"),
        (Op.MAX_POOL2D, pool, image, f"{name}_pooled"),
        (Op.RESHAPE, fbs.ReshapeAttribute(), shape, name),
    ]
    for op, attribute, sizes, output in steps:
        operands = [value, graph.shape_constant(sizes)] if op == Op.RESHAPE else [value]
        value = graph.operator(op, attribute, operands, output, sizes, dtype)
    return list(graph.operators()[count:])
