# SPDX-License-Identifier: BSD-3-Clause
"""Batch norms in evaluation: part of the layer before them, or a layer of one weight a channel.

``batch_norm(layer(x, w, b))`` -> ``layer(x, w * s, b * s + t)``, elsewhere ``batch_norm(x)`` ->
``conv(x, s, t, groups=channels)``, where ``s = weight / sqrt(var + eps)``, ``t = bias - mean * s``.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from etx_quant.constants import add_constant, tensor_of
from etx_quant.rows import ROWS, Recurrent, Row, Table, Weighted

__all__ = ["fold_norms", "norms_as_layers", "part_norm"]

aten = torch.ops.aten
NORM = aten.batch_norm.default
LAYER = {
    2: aten.conv1d.default,
    3: aten.conv1d.default,
    4: aten.conv2d.default,
    5: aten.conv3d.default,
}
INTEGERS = 2, 3, 4
VOLUMES: dict[object, Row] = {
    aten.conv3d.default: Weighted(),
    aten.conv3d.padding: Weighted(),
    aten.conv_transpose3d.input: Weighted(axis=1),
}
LAYERS = {op: row for op, row in {**ROWS, **VOLUMES}.items() if isinstance(row, Weighted)}
GROUPS = {
    aten.conv_transpose1d.default: 6,
    aten.conv_transpose2d.input: 6,
    aten.conv_transpose3d.input: 6,
}
Constants = tuple[Node, Node]


def fold_norms(model: GraphModule) -> None:
    """Make each norm behind a weighted operator part of it, or a layer where others read that.

    torchao would fold it into weights and results that others share, and one without statistics.
    """
    made: dict[tuple[str, ...], Constants] = {}
    for node in _norms(model, LAYER):
        layer = node.args[0]
        if not isinstance(layer, Node) or layer.target not in LAYERS:
            continue
        weights = [*layer.args[1:3], layer.kwargs.get("bias")]
        is_matrix = layer.target is aten.linear.default
        has_channels = not is_matrix or layer.meta["val"].dim() == 2
        if len(layer.users) == 1 and all(map(_is_constant, weights)) and has_channels:
            _fold(model, layer, node, made)
        else:
            _replace(model, node, made)
    for node in model.graph.find_nodes(op="call_function", target=NORM):
        if node.args[3] is None and getattr(node.args[0], "target", None) in LAYERS:
            part_norm(node)
    _finish(model)


def part_norm(norm: Node) -> None:
    """``batch_norm(layer(x))`` -> ``batch_norm(clone(layer(x)))``, which torchao does not fold."""
    layer = norm.args[0]
    assert isinstance(layer, Node)
    with norm.graph.inserting_before(norm):
        copied = norm.graph.call_function(aten.clone.default, (layer,))
    copied.meta = dict(layer.meta)
    norm.replace_input_with(layer, copied)


def norms_as_layers(
    model: GraphModule, is_taken: Callable[[Node], bool], also_alone: bool = False
) -> None:
    """Make each norm a layer for which ``is_taken``, beside operators that have rows or not."""
    made: dict[tuple[str, ...], Constants] = {}
    for node in _norms(model, INTEGERS):
        if (also_alone or _has_neighbour(node)) and is_taken(node):
            _replace(model, node, made)
    _finish(model)


def _finish(model: GraphModule) -> None:
    model.graph.eliminate_dead_code()
    model.recompile()


def _norms(model: GraphModule, ranks: Container[int]) -> list[Node]:
    """Return the norms by constants, over values of such ranks."""
    nodes = model.graph.find_nodes(op="call_function", target=NORM)
    return [
        node
        for node in nodes
        if not node.args[5]
        and node.args[3] is not None
        and all(map(_is_constant, node.args[1:5]))
        and node.meta["val"].dim() in ranks
    ]


def _is_constant(argument: object) -> bool:
    return argument is None or (isinstance(argument, Node) and argument.op == "get_attr")


def _has_neighbour(norm: Node) -> bool:
    """Tell whether what is before the norm, or a layer behind it, can be quantized."""
    before: Row | None = ROWS.get(norm.args[0].target)  # type: ignore[union-attr]
    if before is not None and not isinstance(before, (Recurrent, Table)):
        return True
    return any(isinstance(ROWS.get(user.target), Weighted) for user in norm.users)


def _value(model: GraphModule, node: object) -> Tensor | None:
    if not isinstance(node, Node):
        return None
    value: Tensor = tensor_of(model, node)
    return value.detach().double()


def _scale_and_shift(model: GraphModule, norm: Node) -> tuple[Tensor, Tensor]:
    """Return ``s`` and ``t`` in float64."""
    weight, bias, mean, var = (_value(model, argument) for argument in norm.args[1:5])
    assert mean is not None
    assert var is not None
    epsilon: Any = norm.args[7]
    scale = (var + epsilon).rsqrt() * (1 if weight is None else weight)
    return scale, (0 if bias is None else bias) - mean * scale


def _key(*parts: object) -> tuple[str, ...]:
    return tuple(str(part.target if isinstance(part, Node) else part) for part in parts)


def _fold(
    model: GraphModule, layer: Node, norm: Node, made: dict[tuple[str, ...], Constants]
) -> None:
    """Give ``layer`` constants of its own, the same to calls with the same ones and norm."""
    target: Any = layer.target
    place = GROUPS.get(target, 0)
    groups: Any = layer.args[place] if 0 < place < len(layer.args) else 1
    given, bias = layer.args[1], [*layer.args, layer.kwargs.get("bias")][2]
    key = _key(layer.target, groups, given, bias, *norm.args[1:5])
    if key not in made:
        scale, shift = _scale_and_shift(model, norm)
        weight, before = _value(model, given), _value(model, bias)
        assert weight is not None
        axis = LAYERS[layer.target].axis
        parts = weight.view(groups, -1, *weight.shape[1:])
        rest = [1] * (weight.dim() - 1 - axis)
        scales = scale.view(groups, *[1] * axis, -1, *rest)
        folded = (parts * scales).flatten(0, 1)
        shifted = shift if before is None else before * scale + shift
        made[key] = _stored(model, layer, str(given), folded, shifted)
    layer.args = (layer.args[0], *made[key], *layer.args[3:])
    layer.kwargs = {k: v for k, v in layer.kwargs.items() if k != "bias"}
    norm.replace_all_uses_with(layer)


def _replace(model: GraphModule, norm: Node, made: dict[tuple[str, ...], Constants]) -> None:
    """Put a convolution of one weight a channel in the place of ``norm``."""
    value, key = norm.meta["val"], _key(*norm.args[1:5], norm.meta["val"].dim())
    if key not in made:
        scale, shift = _scale_and_shift(model, norm)
        weight = scale.view(-1, *[1] * max(value.dim() - 1, 2))
        made[key] = _stored(model, norm, str(norm), weight, shift)
    is_row, channels = value.dim() == 2, value.shape[1]
    pairs = [1] * (1 if is_row else value.dim() - 2)
    options = (pairs, [0] * len(pairs), pairs, channels)
    x: Any = norm.args[0]
    with model.graph.inserting_before(norm):
        if is_row:
            x = _call(norm, aten.unsqueeze.default, (x, 2), value[..., None])
        held = value[..., None] if is_row else value
        x = _call(norm, LAYER[value.dim()], (x, *made[key], *options), held)
        if is_row:
            x = _call(norm, aten.squeeze.dim, (x, 2), value)
    norm.replace_all_uses_with(x)


def _call(norm: Node, target: Any, args: tuple[Any, ...], value: Tensor) -> Node:
    made = norm.graph.call_function(target, args)
    made.meta = {**norm.meta, "val": value}
    made.meta.pop("tensor_meta", None)
    return made


def _stored(model: GraphModule, reader: Node, name: str, weight: Tensor, bias: Tensor) -> Constants:
    value = reader.meta["val"]
    return (
        add_constant(model, f"{name}_scaled", weight, value),
        add_constant(model, f"{name}_shift", bias, value),
    )
