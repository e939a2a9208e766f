# SPDX-License-Identifier: BSD-3-Clause
"""Whether a quantizer took what a model consists of."""

from __future__ import annotations

import warnings
from collections.abc import Collection

import torch
from torch import Tensor
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import GraphModule, Node

from etx_quant.annotate import KEY, layer_of
from etx_quant.errors import QuantizationError, QuantizationWarning
from etx_quant.rows import ROWS, Weighted
from etx_quant.simulation import observer_nodes

__all__ = ["check_taken"]

LISTED = 8
"""How many operators a message names."""


def check_taken(prepared: GraphModule, recipe: str = "", keep_float: Collection[str] = ()) -> None:
    """Refuse a prepared model that has nothing quantized; warn where most weights are float.

    ``recipe``: its name, where it is one.
    """
    layers = [n for n in prepared.graph.nodes if isinstance(ROWS.get(n.target), Weighted)]
    left = [n for n in layers if not (KEY in n.meta and n.meta[KEY].input_qspec_map)]
    convolutions = [n for n in left if not ROWS[n.target].is_matrix]  # type: ignore[attr-defined]
    hint = ""
    if recipe and recipe != "int8" and convolutions:
        hint = f"recipe {recipe!r} is for linear layers and embeddings, and leaves "
        hint += f"{len(convolutions)} convolutions in float"
    inner = _control_flow(prepared)
    inside = f"what is inside of {' and '.join(inner)} stays in float" if inner else ""
    if not observer_nodes(prepared):
        if layers and all(_is_within(layer_of(n), keep_float) for n in layers):
            raise QuantizationError(
                "nothing is quantized: keep_float names every layer with a weight; name fewer"
            )
        floats = _other_floats(layers)
        raise QuantizationError(
            f"nothing is quantized: {hint}; recipe 'int8' takes them"
            if hint
            else f"nothing is quantized: {floats}; call .float() of the model and its inputs"
            if floats
            else f"nothing is quantized: the quantizer takes {_left(prepared)} with its "
            f"configuration{'; ' * bool(inside)}{inside}; etx_quant.rows.ROWS lists what "
            "Int8Quantizer takes"
        )
    whole, left_float = sum(map(_numbers, layers)), sum(map(_numbers, convolutions))
    if hint and 2 * left_float > whole:
        text = f"{hint}, with {left_float:,} of {whole:,} weights; recipe 'int8' takes them"
        warnings.warn(text, QuantizationWarning, stacklevel=5)
    within = sum(inner.values())
    if within > whole:
        text = f"{inside}, with {within:,} of {whole + within:,} weights"
        warnings.warn(text, QuantizationWarning, stacklevel=5)


def _is_within(layer: str, modules: Collection[str]) -> bool:
    return any(not name or layer == name or layer.startswith(f"{name}.") for name in modules)


def _control_flow(prepared: GraphModule) -> dict[str, int]:
    """Return the names of control flow, whose graphs are not quantized, with the weights in it."""
    found: dict[str, int] = {}
    for node in prepared.graph.nodes:
        if isinstance(node.target, HigherOrderOperator):
            given = [n.meta.get("val") for n in node.all_input_nodes if n.op == "get_attr"]
            weights = [v for v in given if isinstance(v, Tensor) and v.dim() > 1]
            name = str(node.target)
            found[name] = found.get(name, 0) + sum(v.numel() for v in weights)
    return found


def _left(prepared: GraphModule) -> str:
    """Say which operators there are, those with weights first and with their layers."""
    first: dict[str, Node] = {}
    for node in prepared.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, OpOverload):
            first.setdefault(node.target.overloadpacket.__name__, node)
    if not first:
        return "none of the model's operators, of which its graph has none,"
    weighted = [
        name
        for name, node in first.items()
        if any(n.op == "get_attr" and n.meta["val"].dim() > 1 for n in node.all_input_nodes)
    ]
    names = [
        *(f"{name} (layer {layer_of(first[name])!r})" for name in weighted),
        *(name for name in first if name not in weighted),
    ]
    more = [f"{len(names) - LISTED} more"] if len(names) > LISTED else []
    return f"none of {', '.join([*names[:LISTED], *more])}"


def _other_floats(layers: list[Node]) -> str:
    """Say which layer has a weight of other floats than those that are quantized."""
    for layer in layers:
        value = layer.meta.get("val")
        if isinstance(value, Tensor) and value.dtype != torch.float32:
            return f"layer {layer_of(layer)!r} is {str(value.dtype).removeprefix('torch.')}"
    return ""


def _numbers(layer: Node) -> int:
    """Return how many numbers the weight of a layer has."""
    weight = layer.args[1]
    if isinstance(weight, Node) and weight.op == "call_module":
        (weight,) = weight.args
    value = weight.meta.get("val") if isinstance(weight, Node) else None
    return value.numel() if isinstance(value, Tensor) else 0
