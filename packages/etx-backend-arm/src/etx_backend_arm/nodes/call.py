# SPDX-License-Identifier: BSD-3-Clause
"""An operator while it is lowered: its operands, and where its result goes, in either profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.fx import Node

from etx_backend_arm.nodes.table import arguments
from etx_backend_arm.quantized import DEQUANTIZE, Affine, Step, affine, find_step, split_of
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import DTYPES, PERMS, Values

__all__ = ["Call"]


class Call:
    """Operands and result of ``node``: int8 with a scale where it is a step, else floats.

    ``layout`` is one in which the first activation exists already; all operands of rank 4 are taken
    in it.
    """

    def __init__(self, values: Values, node: Node, layout: str | None = None) -> None:
        self.values, self.node, self.graph = values, node, values.graph
        self.name = node.name
        found = find_step(node, values.parameter)
        self.step = values.step(node) if isinstance(found, Step) else None
        self.operands = _nodes((split_of(node) or node).args)
        self.activations = [n for n in self.operands if values.parameter(self.source(n)) is None]
        self.layout = layout or self._layout()

    def _layout(self) -> str:
        result = self.node.meta["val"]
        if result.dim() != 4:
            return "nchw"
        images = [each for each in self.activations if each.meta["val"].dim() == 4]
        return self.values.layout(self.source(images[0])) if images else "nchw"

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Return all arguments in the order of the schema, defaults filled in."""
        return arguments(self.node)

    @property
    def result(self) -> Node:
        """Return the node whose value is made."""
        return self.step.result if self.step else self.node

    def source(self, node: Node) -> Node:
        """Return the node of the integers behind an activation, or the node itself."""
        if node.target is DEQUANTIZE and isinstance(node.args[0], Node):
            return node.args[0]
        return node

    def get(self, node: Node, layout: str | None = None) -> str:
        """Return the value of an activation or constant."""
        at = layout or self.layout
        return self.values.get(self.source(node), at if node.meta["val"].dim() == 4 else "nchw")

    def form(self, node: Node) -> Affine:
        """Return what the integers of an activation mean."""
        found = affine(node)
        assert found is not None
        return found

    def aligned(self, node: Node) -> str:
        """Return an activation in the scale of the result."""
        name, step = self.get(node), self.step
        made = self.fresh(f"as_{node.name}")
        if step is None or made in self.graph:
            return name if step is None else made
        given, form = self.form(node), step.form
        if (given.scale, given.zero_point) == (form.scale, form.zero_point):
            return name
        points, ratio = (given.zero_point, form.zero_point), given.scale / form.scale
        return self.graph.rescale(name, [ratio], points, made, DTYPES[form.dtype])

    def fresh(self, suffix: str) -> str:
        """Return a name for something on the way to the result."""
        return f"{self.name}_{suffix}"

    @property
    def shape(self) -> list[int]:
        """Return the sizes of the result in the layout."""
        return self.values.shape(self.node, self.layout)

    def dim(self, dim: int, rank: int | None = None) -> int:
        """Return where a dimension of a tensor of rank ``rank`` lies in the layout."""
        size = self.node.meta["val"].dim() if rank is None else rank
        dim %= size
        return PERMS["nhwc"].index(dim) if self.layout == "nhwc" and size == 4 else dim

    def emit(
        self, op: Op, attribute: Any, inputs: Sequence[str], suffix: str, shape: Sequence[int]
    ) -> str:
        """Add an operator that keeps the type of its first input."""
        dtype = self.graph.dtype(inputs[0])
        return self.graph.operator(op, attribute, inputs, self.fresh(suffix), shape, dtype)

    def reshape(self, value: str, shape: Sequence[int], suffix: str) -> str:
        """Return a value in another shape."""
        return self.graph.reshape(value, shape, self.fresh(suffix))

    def moved(self, value: str) -> None:
        """Give out a value that has the scale of the first activation."""
        form = self.form(self.activations[0]) if self.step else None
        self.done(value, form.scale if form else None, form.zero_point if form else 0)

    def same(self, value: str) -> None:
        """Give out a value that has the scale of the result already."""
        form = self.step.form if self.step else None
        self.done(value, form.scale if form else None, form.zero_point if form else 0)

    def done(
        self, value: str, scale: float | Sequence[float] | None = None, point: int = 0
    ) -> None:
        """Give out a value: integers in these scales and zero point, or floats."""
        if self.step is None:
            if self.graph.dtype(value) in (DType.FP32, DType.FP16, DType.BF16):
                value = self.cast(value, self.dtype, "rounded")
            self.values.define(self.node, value, self.layout)
            return
        assert scale is not None
        scales = [scale] if isinstance(scale, float) else list(scale)
        self.values.requantize(self.step, value, scales, self.layout, point)

    def wide(self, value: str, scale: float, point: int, suffix: str) -> str:
        """Return int8 as int32: what is above the zero point, times ``scale``."""
        return self.graph.rescale(value, [scale], (point, 0), self.fresh(suffix), DType.INT32)

    def number(self, value: float, rank: int, of: str | None = None) -> str:
        """Return a constant of one element: int32 in a step, else as the floats of ``of`` are.

        Without ``of`` it is as the result.
        """
        dtype = DType.INT32 if self.step else self.graph.dtype(of) if of else self.dtype
        return self.values.number(value, rank, dtype)

    def as_float32(self, value: str, suffix: str) -> str:
        """Return floats as float32, in which PyTorch computes sums and formulas."""
        return self.cast(value, DType.FP32, suffix)

    def cast(self, value: str, dtype: DType, suffix: str) -> str:
        """Return a value as another type; ``done`` makes the type of the result of it."""
        if self.graph.dtype(value) == dtype:
            return value
        shape, attribute = self.graph.shape(value), fbs.CastAttribute()
        return self.graph.operator(Op.CAST, attribute, [value], self.fresh(suffix), shape, dtype)

    @property
    def dtype(self) -> DType:
        """Return the type of floats' elements."""
        return DTYPES[self.node.meta["val"].dtype]


def _nodes(given: Any) -> list[Node]:
    if isinstance(given, Node):
        return [given]
    if isinstance(given, (list, tuple)):
        return [node for each in given for node in _nodes(each)]
    return []
