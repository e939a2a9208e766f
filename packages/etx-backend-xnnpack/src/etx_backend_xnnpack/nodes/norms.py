# SPDX-License-Identifier: BSD-3-Clause
"""Normalizations: means by pooling, then arithmetic that broadcasts."""

from __future__ import annotations

import math
from typing import Any

import torch
from etx_exir.ir.constants import Constants
from torch import Tensor
from torch.fx import Node

from etx_backend_xnnpack import layout
from etx_backend_xnnpack._generated.xnnpack import Operator
from etx_backend_xnnpack.layout import Order, Size, plain
from etx_backend_xnnpack.nodes.means import mean_over, mean_over_last, unknown
from etx_backend_xnnpack.nodes.table import constant, lowers, shape_of
from etx_backend_xnnpack.quantized import argument
from etx_backend_xnnpack.values import Values

aten = torch.ops.aten


class Norm:
    """A value on its way through a normalization; `over` are the dimensions of its means."""

    def __init__(
        self, values: Values, number: int, sizes: list[Size], over: tuple[int, int]
    ) -> None:
        self.values, self.builder = values, values.builder
        self.number, self.sizes, self.over = number, sizes, over
        first, last = over
        self.means = [1 if first <= dim < last else s for dim, s in enumerate(sizes)]

    def mean(self, number: int) -> int:
        """Return the mean of a value of these sizes."""
        if self.over == (len(self.sizes) - 1, len(self.sizes)):
            return mean_over_last(self.values, number, self.sizes)
        return mean_over(self.values, number, self.sizes, *self.over)

    def center(self) -> None:
        """Subtract the mean."""
        mean = self.mean(self.number)
        target = self.builder.value(self.sizes)
        self.number = self.builder.binary(Operator.Subtract, self.number, mean, target)

    def divide(self, epsilon: float) -> None:
        """Divide by the square root of the mean of squares and `epsilon`."""
        builder = self.builder
        squares = builder.unary(Operator.Square, self.number, builder.value(self.sizes))
        mean = self.mean(squares)
        sum_ = builder.value(self.means)
        builder.binary(Operator.Add, mean, builder.number(epsilon), sum_)
        root = builder.unary(Operator.ReciprocalSquareRoot, sum_, builder.value(self.means))
        self.number = self.binary(Operator.Multiply, root)

    def binary(self, kind: Operator, other: int, target: int | None = None) -> int:
        """Combine the value with another one."""
        into = self.builder.value(self.sizes) if target is None else target
        self.number = self.builder.binary(kind, self.number, other, into)
        return self.number


def layer_sizes(node: Node, constants: Constants) -> str | None:
    """Require dimensions whose means a pooling or a product computes."""
    sizes, dims = shape_of(node.args[0]), len(argument(node, "normalized_shape"))
    if unknown(sizes[-dims:]):
        return "it normalizes over a symbolic size"
    if dims > 1 and unknown(sizes) > 1:
        return "several sizes are symbolic"
    return None


PARAMETERS = (constant("weight"), constant("bias"))


@lowers(
    aten.native_layer_norm.default,
    when=[layer_sizes, *PARAMETERS],
    only_first=True,
    note="means and arithmetic",
    wide=True,
    kind="norm",
)
@lowers(
    aten.layer_norm.default, when=[layer_sizes, *PARAMETERS], whole=True, wide=True, kind="norm"
)
def layer_norm(values: Values, node: Node) -> None:
    """Emit means and arithmetic."""
    source: Any = node.args[0]
    sizes, dims = values.sizes(source), len(argument(node, "normalized_shape"))
    order = values.last(source, len(sizes) - 1) if dims == 1 else plain(len(sizes))
    number = values.get(source, order)
    norm = Norm(values, number, layout.ordered(sizes, order), (len(sizes) - dims, len(sizes)))
    norm.center()
    norm.divide(float(argument(node, "eps")))
    for kind, name in ((Operator.Multiply, "weight"), (Operator.Add, "bias")):
        tensor = values.tensor(argument(node, name))
        if tensor is not None:
            norm.binary(kind, values.builder.constant(tensor))
    values.define(values.first(node), norm.number, order)


def group_sizes(node: Node, constants: Constants) -> str | None:
    """Require known sizes of at most four dimensions."""
    sizes = shape_of(node.args[0])
    if len(sizes) > 4:
        return f"its argument has {len(sizes)} dimensions, more than 4"
    return "its sizes are known at run time only" if unknown(sizes) else None


@lowers(
    aten.native_group_norm.default,
    when=[group_sizes, *PARAMETERS],
    only_first=True,
    whole=True,
    wide=True,
    kind="norm",
)
@lowers(
    aten.group_norm.default, when=[group_sizes, *PARAMETERS], whole=True, wide=True, kind="norm"
)
def group_norm(values: Values, node: Node) -> None:
    """Emit means and arithmetic of (batch, groups, the rest) over the rest."""
    source: Any = node.args[0]
    groups = argument(node, "group" if "native" in str(node.target) else "num_groups")
    weight, bias = (values.tensor(argument(node, name)) for name in ("weight", "bias"))
    sizes = values.sizes(source)
    order = plain(len(sizes))
    flat = [sizes[0] * groups, math.prod(sizes[1:]) // groups]
    number = values.shaped(values.get(source, order), flat)
    norm = Norm(values, number, flat, (1, 2))
    norm.center()
    norm.divide(float(argument(node, "eps")))
    number = values.shaped(norm.number, sizes)
    wide = [-1] + [1] * (len(sizes) - 2)
    for kind, tensor in ((Operator.Multiply, weight), (Operator.Add, bias)):
        if tensor is not None:
            other = values.builder.constant(tensor.reshape(wide))
            number = values.builder.binary(kind, number, other, values.builder.value(sizes))
    values.define(values.first(node), number, order)


@lowers(
    aten._native_batch_norm_legit_no_training.default,
    when=[constant(name) for name in ("weight", "bias", "running_mean", "running_var")],
    only_first=True,
    wide=True,
)
def batch_norm(values: Values, node: Node) -> None:
    """Emit a product and a sum with one number a channel."""
    source: Any = node.args[0]
    names = ("weight", "bias", "running_mean", "running_var")
    weight, bias, mean, var = (values.tensor(argument(node, name)) for name in names)
    assert mean is not None
    assert var is not None
    factor = torch.rsqrt(var.double() + argument(node, "eps"))
    factor = factor if weight is None else factor * weight.double()
    shift = -mean.double() * factor
    shift = shift if bias is None else shift + bias.double()
    order = values.natural(source)
    sizes = layout.ordered(values.sizes(source), order)
    number = values.get(source, order)
    result = values.result(values.first(node))
    target = values.output(result, order)
    builder = values.builder
    scaled = builder.binary(
        Operator.Multiply, number, _of_channels(values, factor, order), builder.value(sizes)
    )
    builder.binary(Operator.Add, scaled, _of_channels(values, shift, order), target)


@lowers(
    aten._native_batch_norm_legit.no_stats,
    when=[group_sizes, *PARAMETERS],
    only_first=True,
    wide=True,
    kind="norm",
)
def norm_of_channels(values: Values, node: Node) -> None:
    """Emit means and arithmetic, the channels outermost."""
    source: Any = node.args[0]
    sizes = values.sizes(source)
    order = (1, 0, *range(2, len(sizes)))
    inner = layout.ordered(sizes, order)
    flat = [sizes[1], math.prod(sizes) // sizes[1]]
    norm = Norm(values, values.shaped(values.get(source, order), flat), flat, (1, 2))
    norm.center()
    norm.divide(float(argument(node, "eps")))
    for kind, name in ((Operator.Multiply, "weight"), (Operator.Add, "bias")):
        tensor = values.tensor(argument(node, name))
        if tensor is not None:
            norm.binary(kind, values.builder.constant(tensor.reshape(-1, 1)))
    values.define(values.first(node), values.shaped(norm.number, inner), order)


def _of_channels(values: Values, tensor: Tensor, order: Order) -> int:
    """Return one number a channel, where the channels lie in `order`."""
    behind = len(order) - 1 - order.index(1)
    return values.builder.constant(tensor.reshape([-1] + [1] * behind))
