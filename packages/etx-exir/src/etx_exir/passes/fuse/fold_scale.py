# SPDX-License-Identifier: BSD-3-Clause
"""``s * layer(x, w, b)`` -> ``layer(x, s * w, s * b)``, for linear and convolutions; ``s`` is a
number or has one for each channel, and views, permutations and parts may lie in between.

Not where a product overflows or vanishes: eager's result would be finite, or not zero.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from etx_exir.analysis.element_origin import MOVES, chain_above, is_static, move
from etx_exir.analysis.shapes import same_shape
from etx_exir.analysis.weighted_ops import (
    LAYERS,
    channel_dim,
    channels,
    parameters,
    same_kind,
    scaled_outputs,
)
from etx_exir.ir.equal_values import forget, scale
from etx_exir.passes.base import NodePass

aten = torch.ops.aten


class FoldScale(NodePass):
    """Scale weights ahead of time, where nothing else reads the unscaled channels."""

    targets = (aten.mul.Scalar, aten.mul.Tensor)

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        found = self._operands(node)
        if found is None:
            return None
        source, factor = found
        layer, chain = chain_above(source)
        if layer.target not in LAYERS:
            return None
        if not _alike(node, source, layer):
            return "the product has another dtype or shape than the layer"
        held = parameters(layer, self.constants)
        if isinstance(held, str):
            return held
        factors = _by_channel(factor, layer, chain)
        if isinstance(factors, str):
            return factors
        if not self._scale(layer, held, factors):
            return "a weight would overflow or vanish"
        path = [layer, *chain]
        if factor.numel() == 1 and all(len(item.users) == 1 for item in path):
            scale(path, float(factor))
        else:
            forget(path)
        forget([source])
        return source

    def _operands(self, node: Node) -> tuple[Node, Tensor] | None:
        """Return what is scaled and the constant factor."""
        left, right = node.args[:2]
        for source, factor in ((left, right), (right, left)):
            if not isinstance(source, Node) or not isinstance(source.meta["val"], Tensor):
                continue
            if isinstance(factor, int | float):
                return source, torch.tensor(factor, dtype=torch.float64)
            value = self.constant(factor)
            if value is not None and value.is_floating_point():
                return source, value
        return None

    def _scale(self, layer: Node, held: tuple[Tensor, Tensor | None], factors: Tensor) -> bool:
        weight, bias = held
        with torch.no_grad():
            pairs = [(weight, scaled_outputs(weight, factors, layer).to(weight.dtype))]
            if bias is not None:
                pairs.append((bias, (bias * factors).to(bias.dtype)))
        if not all(same_kind(before, after) for before, after in pairs):
            return False
        nodes: Any = layer.args[1:3]
        scaled = [
            self.constants.add(after, f"{self.constants.name(old)}_scaled", self.mode)
            for old, (_, after) in zip(nodes, pairs, strict=False)
        ]
        layer.args = (layer.args[0], *scaled, *layer.args[1 + len(scaled) :])
        return True


def _alike(node: Node, source: Node, layer: Node) -> bool:
    values = [item.meta["val"] for item in (node, source, layer)]
    if any(not isinstance(value, Tensor) for value in values):
        return False
    return len({value.dtype for value in values}) == 1 and same_shape(*values[:2])


def _by_channel(factor: Tensor, layer: Node, chain: list[Node]) -> Tensor | str:
    """Return a factor for each channel of `layer`, or why there is none."""
    path = [layer, *chain]
    if factor.numel() == 1 and all(len(node.users) == 1 for node in path):
        return factor.reshape(1).expand(channels(layer))
    if not is_static(layer):
        return "another operator reads the unscaled result, or its shape is symbolic"
    count, shape = channels(layer), layer.meta["val"].shape
    aligned = [1] * len(shape)
    aligned[channel_dim(layer)] = count
    numbers: Any = torch.arange(count).reshape(aligned).expand(shape)
    read_by_others: list[Tensor] = []
    for node, following in zip(path, [*chain, None], strict=True):
        for user in node.users:
            if user is not following and following is not None:
                read_by_others += _channels_read(user, numbers)
        if following is None and len(node.users) > 1:
            return "another operator reads the unscaled result"
        numbers = numbers if following is None else move(numbers, [following])
    numbers, expected = _distinct(numbers, factor.expand(numbers.shape))
    factors = torch.ones(count, dtype=factor.dtype)
    factors[numbers] = expected
    if not torch.equal(factors[numbers], expected):
        return "the factor differs within a channel"
    taken = torch.zeros(count, dtype=torch.bool)
    taken[numbers] = True
    if any(taken[item].any() for read in read_by_others for item in _distinct(read)):
        return "another operator reads the unscaled channels"
    return factors


def _distinct(*tensors: Tensor) -> list[Tensor]:
    """Return one of the equal slices along every dimension that none of `tensors` strides over."""
    first = tensors[0]
    kept = tuple(
        slice(None) if any(t.stride(dim) for t in tensors) else slice(1)
        for dim in range(first.dim())
    )
    return [t[kept] for t in tensors]


def _channels_read(user: Node, numbers: Any) -> list[Tensor]:
    """Return which channels of `numbers`, a tensor or several, `user` reads."""
    if user.target in MOVES and len(user.all_input_nodes) == 1:
        numbers = move(numbers, [user])
    return list(numbers) if isinstance(numbers, tuple | list) else [numbers]
