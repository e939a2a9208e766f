# SPDX-License-Identifier: BSD-3-Clause
"""Fewer operators for the same values: what moves nothing goes behind what computes, and meets.

``f(RESHAPE(x))`` -> ``RESHAPE(f(x))``, ``TRANSPOSE(TRANSPOSE(x))`` -> ``TRANSPOSE(x)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

from etx_backend_arm.tosa import Graph, Op, fbs

__all__ = ["simplify"]

CONSTANTS = (Op.CONST, Op.CONST_SHAPE)
OPERANDS: dict[Op, int] = {
    **dict.fromkeys((Op.ABS, Op.CEIL, Op.CLAMP, Op.CLZ, Op.COS, Op.ERF, Op.EXP, Op.FLOOR), 1),
    **dict.fromkeys((Op.LOG, Op.NEGATE, Op.RECIPROCAL, Op.RESCALE, Op.RSQRT, Op.SIGMOID), 1),
    **dict.fromkeys((Op.CAST, Op.LOGICAL_NOT, Op.SIN, Op.TABLE, Op.TANH), 1),
    **dict.fromkeys((Op.ADD, Op.ARITHMETIC_RIGHT_SHIFT, Op.LOGICAL_LEFT_SHIFT, Op.MAXIMUM), 2),
    **dict.fromkeys((Op.EQUAL, Op.GREATER, Op.MINIMUM, Op.MUL, Op.POW, Op.SUB), 2),
    Op.SELECT: 3,
}
"""What computes element by element, and how many of its inputs are elements."""
REDUCTIONS = (Op.REDUCE_MAX, Op.REDUCE_MIN, Op.REDUCE_SUM)
Shape = tuple[int, ...]


def simplify(graph: Graph) -> None:
    """Take the rewritten operators where they are fewer."""
    before, outputs = list(graph.operators()), list(graph.outputs())
    count = _count(graph)
    _Rewriter(graph).run()
    if _count(graph) >= count:
        for name, old in zip(list(graph.outputs()), outputs, strict=True):
            graph.rename_output(name, old)
        known = {name for each in before for name in each.outputs}
        constants = [each for each in graph.operators() if each.op in CONSTANTS]
        graph.replace([*(c for c in constants if c.outputs[0] not in known), *before])


def _count(graph: Graph) -> int:
    return sum(each.op not in CONSTANTS for each in graph.needed())


class _Rewriter:
    """Writes the operators of a graph again, in their order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.old = list(graph.operators())
        self.outputs = set(graph.outputs())
        self.users = Counter(name for each in self.old for name in set(each.inputs))
        self.readers: dict[str, list[fbs.TosaOperator]] = {}
        for each in self.old:
            for name in each.inputs:
                self.readers.setdefault(name, []).append(each)
        self.makers: dict[str, fbs.TosaOperator] = {}
        self.shapes: dict[tuple[str, Shape], str] = {}
        """Each value of the new operators by what it is a reshape of, and its shape."""
        self.same: dict[str, str] = {}

    def run(self) -> None:
        """Rewrite; constants come first, for they are shared."""
        self.graph.replace([each for each in self.old if each.op in CONSTANTS])
        for each in self.old:
            if each.op in CONSTANTS:
                continue
            self.graph.maker = self.graph.makers.get(each.outputs[0], "")
            inputs = [self.same.get(name, name) for name in each.inputs]
            if each.op == Op.RESHAPE:
                self._reshape(each, inputs[0])
            elif each.op == Op.TRANSPOSE:
                self._transpose(each, inputs[0])
            elif not self._sunk(each, inputs):
                self._add(each.op, each.attribute, inputs, each.outputs[0])

    def _add(self, op: Op, attribute: object, inputs: Sequence[str], output: str) -> str:
        made = fbs.TosaOperator(op=op, attribute=attribute, inputs=list(inputs), outputs=[output])  # type: ignore[arg-type]
        self.graph.append(made)
        self.makers[output] = made
        return output

    def _new(self, output: str, shape: Shape, like: str) -> str:
        """Return the name of a new value, with another shape than ``output``."""
        name = f"{output}_as_{'x'.join(map(str, shape))}"
        if name not in self.graph:
            self.graph.tensor(name, shape, self.graph.dtype(like))
        return name

    def _origin(self, value: str) -> str:
        """Return what a value is a reshape of, or the value."""
        maker = self.makers.get(value)
        if maker is not None and maker.op == Op.RESHAPE:
            return str(maker.inputs[0])
        return value

    def _shaped(self, value: str, shape: Shape, output: str | None = None) -> str:
        """Return a value in another shape; ``output`` is the name to take if it is new."""
        origin = self._origin(value)
        if tuple(self.graph.shape(origin)) == shape:
            return origin
        found = self.shapes.get((origin, shape))
        if found is None:
            found = output or self._new(origin, shape, origin)
            operands = [origin, self.graph.shape_constant(shape)]
            self._add(Op.RESHAPE, fbs.ReshapeAttribute(), operands, found)
            self.shapes[origin, shape] = found
        return found

    def _give(self, output: str, value: str) -> None:
        """Let ``value`` be read in the place of ``output``, which outputs of the graph keep."""
        if output == value:
            return
        if output in self.outputs:
            shape = tuple(self.graph.shape(output))
            if (
                tuple(self.graph.shape(value)) == shape
                and value in self.makers
                and value not in self.outputs
            ):
                self.graph.rename_output(output, value)
                self.outputs = self.outputs - {output} | {value}
                self.same[output] = value
                return
            operands = [self._origin(value), self.graph.shape_constant(shape)]
            self._add(Op.RESHAPE, fbs.ReshapeAttribute(), operands, output)
            return
        self.same[output] = value

    def _reshape(self, each: fbs.TosaOperator, source: str) -> None:
        output = str(each.outputs[0])
        shape = tuple(self.graph.shape(output))
        turned = self._turned_before(source, shape, output)
        if turned is None:
            turned = self._shaped(source, shape, output)
        self._give(output, turned)

    def _turned_before(self, source: str, shape: Shape, output: str) -> str | None:
        """``RESHAPE(TRANSPOSE(RESHAPE(x)))`` -> ``TRANSPOSE(RESHAPE(x))`` where 1s differ."""
        maker = self.makers.get(source)
        if maker is None or maker.op != Op.TRANSPOSE or self.users[str(maker.outputs[0])] > 1:
            return None
        if str(maker.outputs[0]) in self.outputs:
            return None
        inner, perms = str(maker.inputs[0]), list(maker.attribute.perms)  # type: ignore[union-attr]
        given = self.graph.shape(inner)
        if [given[i] for i in perms if given[i] != 1] != [size for size in shape if size != 1]:
            return None
        long = [i for i, size in enumerate(given) if size != 1]
        at = iter([long.index(i) for i in perms if given[i] != 1])
        ones = iter(range(len(long), len(shape)))
        turned = [next(ones) if size == 1 else next(at) for size in shape]
        before = (*[given[i] for i in long], *[1] * (len(shape) - len(long)))
        origin = self._origin(inner)
        if origin == inner and tuple(given) != before:
            return None
        value = self._shaped(inner, before)
        attribute = fbs.TransposeAttribute(perms=turned)
        return self._add(Op.TRANSPOSE, attribute, [value], output)

    def _transpose(self, each: fbs.TosaOperator, source: str) -> None:
        output, perms = str(each.outputs[0]), list(each.attribute.perms)  # type: ignore[union-attr]
        maker = self.makers.get(source)
        if maker is not None and maker.op == Op.TRANSPOSE:
            first = list(maker.attribute.perms)  # type: ignore[union-attr]
            source, perms = str(maker.inputs[0]), [first[i] for i in perms]
        if perms == sorted(perms):
            self._give(output, source)
            return
        if not self._turned_behind(output, source, perms):
            self._add(Op.TRANSPOSE, fbs.TransposeAttribute(perms=perms), [source], output)

    def _turned_behind(self, output: str, source: str, perms: list[int]) -> bool:
        """``TRANSPOSE(RESHAPE(x))``, only read by RESHAPE -> ``TRANSPOSE(x)`` where 1s differ."""
        origin = self._origin(source)
        given, whole = self.graph.shape(origin), self.graph.shape(source)
        readers = self.readers.get(output, [])
        if origin == source or output in self.outputs:
            return False
        if any(reader.op != Op.RESHAPE for reader in readers):
            return False
        if [n for n in given if n != 1] != [n for n in whole if n != 1]:
            return False
        if list(given) == list(whole):
            return False
        long = [i for i, size in enumerate(whole) if size != 1]
        at = [i for i, size in enumerate(given) if size != 1]
        ones = [i for i, size in enumerate(given) if size == 1]
        turned = [*ones, *[at[long.index(i)] for i in perms if whole[i] != 1]]
        shape = tuple(given[i] for i in turned)
        name = self._new(output, shape, source)
        self._add(Op.TRANSPOSE, fbs.TransposeAttribute(perms=turned), [origin], name)
        self._give(output, self._shaped(name, tuple(self.graph.shape(output)), output))
        return True

    def _sunk(self, each: fbs.TosaOperator, inputs: list[str]) -> bool:
        """Put a RESHAPE behind what computes; False where there is none to put."""
        count = 1 if each.op in REDUCTIONS else OPERANDS.get(each.op, 0)
        origins = {self._origin(name) for name in inputs[:count]} - set(inputs[:count])
        for origin in sorted(origins):
            if self._sink(each, inputs, count, tuple(self.graph.shape(origin))):
                return True
        return False

    def _sink(self, each: fbs.TosaOperator, inputs: list[str], count: int, shape: Shape) -> bool:
        output = str(each.outputs[0])
        whole = tuple(self.graph.shape(inputs[0] if each.op in REDUCTIONS else output))
        attribute: object = each.attribute
        if prod(shape) != prod(whole) or (each.op == Op.RESCALE and shape[-1:] != whole[-1:]):
            return False
        place = _places(shape, whole)
        made = shape
        if each.op in REDUCTIONS:
            axis = _axis(shape, whole, each.attribute.axis)  # type: ignore[union-attr]
            if axis is None:
                return False
            made = tuple(1 if i == axis else size for i, size in enumerate(shape))
            attribute = _with_axis(each, axis)
        operands = [self._operand(name, shape, whole, place) for name in inputs[:count]]
        if any(operand is None for operand in operands):
            return False
        name = self._new(output, made, output)
        known = [operand for operand in operands if operand is not None]
        self._add(each.op, attribute, [*known, *inputs[count:]], name)
        self._give(output, self._shaped(name, tuple(self.graph.shape(output)), output))
        return True

    def _operand(
        self, name: str, shape: Shape, whole: Shape, place: list[int | None] | None
    ) -> str | None:
        """Return a value of ``whole``'s dimensions, or a constant, as of ``shape``'s."""
        given = tuple(self.graph.shape(name))
        chosen: Shape | None = None
        if given == whole:
            chosen = shape
        elif prod(given) == 1:
            chosen = (1,) * len(shape)
        elif place is not None and len(given) == len(whole):
            chosen = tuple(1 if at is None else given[at] for at in place)
        elif given[-1] == shape[-1] == whole[-1] == prod(given):
            chosen = (*[1] * (len(shape) - 1), given[-1])
        if chosen is None or prod(chosen) != prod(given):
            return None
        data = self.graph.data(name)
        if data is not None:
            made = f"{name}_as_{'x'.join(map(str, chosen))}"
            return self.graph.constant(made, chosen, self.graph.dtype(name), data)
        origin = self._origin(name)
        if tuple(self.graph.shape(origin)) == chosen:
            return origin
        return self.shapes.get((origin, chosen))


def _places(shape: Shape, whole: Shape) -> list[int | None] | None:
    """Return where each dimension of ``shape`` is in ``whole`` if they differ in 1s alone."""
    found: list[int | None] = []
    at = 0
    for size in shape:
        while size != 1 and at < len(whole) and whole[at] == 1:
            at += 1
        if at < len(whole) and whole[at] == size:
            found.append(at)
            at += 1
        elif size == 1:
            found.append(None)
        else:
            return None
    return found if all(size == 1 for size in whole[at:]) else None


def _axis(shape: Shape, whole: Shape, axis: int) -> int | None:
    """Return the dimension of ``shape`` that holds the elements of one of ``whole``."""
    for i, size in enumerate(shape):
        if size == whole[axis] and prod(shape[:i]) == prod(whole[:axis]):
            return i
    return None


def _with_axis(each: fbs.TosaOperator, axis: int) -> object:
    given = each.attribute
    if each.op == Op.REDUCE_SUM:
        return fbs.ReduceSumAttribute(axis=axis)
    kind = fbs.ReduceMaxAttribute if each.op == Op.REDUCE_MAX else fbs.ReduceMinAttribute
    return kind(axis=axis, nan_mode=given.nan_mode)  # type: ignore[union-attr]
