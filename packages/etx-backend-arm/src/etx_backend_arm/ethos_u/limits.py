# SPDX-License-Identifier: BSD-3-Clause
"""What an Ethos-U cannot do of TOSA, as ``vela --supported-ops-report`` says: a row an operator."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from etx_backend_arm.tosa import DType, Graph, Op, ResizeMode, fbs

__all__ = ["over_limit"]

LARGEST = 65536
STRIDE = 3
Rule = Callable[[Any, list[int], list[int], Any], "str | None"]
"""From the attribute, the shapes of the first input and the output and the second input's shape."""


def _stride(attribute: Any) -> str | None:
    if all(1 <= each <= STRIDE for each in attribute.stride):
        return None
    return f"a stride of {attribute.stride}; at most {STRIDE}"


def _axes(shape: list[int]) -> str | None:
    if all(1 <= each <= LARGEST for each in shape[1:]):
        return None
    return f"a shape of {shape}; at most {LARGEST} an axis"


def _kernel(height: int, width: int, most: int, tallest: int) -> str | None:
    if height * width <= most and height <= tallest:
        return None
    return f"a window of {height}x{width}; at most {most} elements, {tallest} rows"


def _padding(attribute: Any) -> str | None:
    """Registers have 7 bits for what is before and 8 for what is behind; Vela drops the rest."""
    top, bottom, left, right = attribute.pad
    if max(top, left) < 128 and max(bottom, right) < 256:
        return None
    return f"padding of {list(attribute.pad)}; at most 127 before and 255 behind"


def _conv(attribute: Any, source: list[int], made: list[int], weight: list[int]) -> str | None:
    found = _kernel(weight[1], weight[2], 4096, 64) or _padding(attribute)
    return found or _stride(attribute) or _axes([1, source[-1]]) or _axes([1, made[-1]])


def _depthwise(attribute: Any, source: list[int], made: list[int], weight: list[int]) -> str | None:
    return _conv(attribute, source, made, [1, *weight])


def _max_pool(attribute: Any, source: list[int], made: list[int], other: Any) -> str | None:
    height, width = attribute.kernel
    found = _kernel(height, width, LARGEST, 256) or _padding(attribute)
    return found or _stride(attribute) or _axes(source)


def _avg_pool(attribute: Any, source: list[int], made: list[int], other: Any) -> str | None:
    if source[0] != 1:
        return f"a batch of {source[0]}; it takes 1"
    if any(attribute.pad) and any(each > 8 for each in attribute.kernel):
        return f"a padded window of {attribute.kernel}; at most 8x8"
    return _max_pool(attribute, source, made, other)


def _table(attribute: Any, source: list[int], made: list[int], table: list[int]) -> str | None:
    return None if table == [256] else "a table of 16 bits"


def _transpose(attribute: Any, source: list[int], made: list[int], other: Any) -> str | None:
    axes = [size for size in source if size != 1]
    if len(axes) > 5:
        return f"a transposition of {source}, of {len(axes)} dimensions"
    if len(axes) > 2 and prod(sorted(axes)[2:]) > LARGEST:
        return f"a transposition of {source}"
    return None


def _transposed_conv(
    attribute: Any, source: list[int], made: list[int], weight: list[int]
) -> str | None:
    height, width = weight[1:3]
    stride = list(attribute.stride)
    flat_rows, flat_columns = source[1] == height == 1, source[2] == width == 1
    allowed = [[1, 1], [2, 2], *[[1, 2]] * flat_rows, *[[2, 1]] * flat_columns]
    if stride not in allowed:
        return f"a stride of {stride}; 1, 2, or one of them along rows or columns of 1"
    return _kernel(height, width, 4096, 64) or _axes(source) or _axes(made)


def _resize(attribute: Any, source: list[int], made: list[int], other: Any) -> str | None:
    if attribute.mode != ResizeMode.NEAREST:
        return "interpolation, which Vela takes only where no scale changes"
    if source[0] != 1:
        return f"{source[0]} images; one"
    factors = [made[axis] / source[axis] for axis in (1, 2)]
    return None if set(factors) <= {2, 4, 8} else f"factors {factors}; 2, 4 or 8"


def _reverse(attribute: Any, source: list[int], made: list[int], other: Any) -> str | None:
    rank = len(source)
    if rank - 3 <= attribute.axis < rank - 1:
        return None
    return f"dimension {attribute.axis} of {rank}; it takes rows and columns"


RULES: dict[Op, Rule | None] = {
    Op.CONST: None,
    Op.CONST_SHAPE: None,
    Op.ABS: None,
    Op.ADD: None,
    Op.ARITHMETIC_RIGHT_SHIFT: None,
    Op.CLZ: None,
    Op.LOGICAL_LEFT_SHIFT: None,
    Op.CLAMP: None,
    Op.MUL: None,
    Op.CONCAT: None,
    Op.MATMUL: None,
    Op.MAXIMUM: None,
    Op.MINIMUM: None,
    Op.PAD: None,
    Op.REDUCE_MAX: None,
    Op.REDUCE_MIN: None,
    Op.REDUCE_SUM: None,
    Op.RESCALE: None,
    Op.RESHAPE: None,
    Op.RESIZE: _resize,
    Op.REVERSE: _reverse,
    Op.SLICE: None,
    Op.SUB: None,
    Op.TABLE: _table,
    Op.TILE: None,
    Op.AVG_POOL2D: _avg_pool,
    Op.CONV2D: _conv,
    Op.DEPTHWISE_CONV2D: _depthwise,
    Op.MAX_POOL2D: _max_pool,
    Op.TRANSPOSE: _transpose,
    Op.TRANSPOSE_CONV2D: _transposed_conv,
}
"""By operator the rule that its shapes and attributes keep; None where all do."""
WHOLE_PROFILE = ("ethos-u85",)
"""Families that take all of TOSA's profile INT."""


def over_limit(graph: Graph, family: str) -> str | None:
    """Return the first thing in a graph that the family of targets cannot do, or None."""
    if {Op.TRANSPOSE_CONV2D, Op.CONCAT} <= {operator.op for operator in graph.operators()}:
        return f"transposed convolutions in groups on {family}"  # Vela 5.2.0: wrong commands
    resized = (each for each in graph.operators() if each.op == Op.RESIZE)
    if any(_dtypes(graph, each)[0] == DType.INT16 for each in resized):
        return f"RESIZE on {family}: images of int16"
    if family in WHOLE_PROFILE:
        return _apart(graph, family)
    if {Op.DEPTHWISE_CONV2D, Op.MUL} <= {operator.op for operator in graph.operators()}:
        found = next(o for o in graph.operators() if o.op == Op.DEPTHWISE_CONV2D)
        if graph.shape(found.inputs[0])[0] > 1:  # Vela 5.2.0 makes wrong commands of it
            return f"averages of several images with windows of different sizes on {family}"
    for operator in graph.operators():
        if operator.op not in RULES:
            return f"{family} has no {operator.op.name}"
        if operator.op == Op.RESCALE and _dtypes(graph, operator) == (DType.INT48, DType.INT32):
            return f"{family} has no RESCALE of int48 to int32"
        if operator.op == Op.TRANSPOSE_CONV2D and _dtypes(graph, operator)[0] == DType.INT16:
            return f"{family} has transposed convolutions of int8 only"
        rule = RULES[operator.op]
        if rule is None:
            continue
        shapes = [graph.shape(name) for name in operator.inputs[:2] if name in graph]
        other = shapes[1] if len(shapes) > 1 else None
        refused = rule(operator.attribute, shapes[0], graph.shape(operator.outputs[0]), other)
        if refused is not None:
            return f"{operator.op.name} on {family}: {refused}"
    return None


def _apart(graph: Graph, family: str) -> str | None:
    """Return a depthwise window at which Vela 5.2.0 may end without a word."""
    for operator in graph.operators():
        attribute: Any = operator.attribute
        if operator.op != Op.DEPTHWISE_CONV2D or max(attribute.dilation) == 1:
            continue
        if max(attribute.stride) > STRIDE:
            return (
                f"{operator.op.name} on {family}: a stride of {list(attribute.stride)} with "
                f"dilation {list(attribute.dilation)}; at most {STRIDE}"
            )
    return None


def _dtypes(graph: Graph, operator: fbs.TosaOperator) -> tuple[DType, DType]:
    return graph.dtype(operator.inputs[0]), graph.dtype(operator.outputs[0])
