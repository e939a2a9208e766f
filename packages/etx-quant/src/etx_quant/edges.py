# SPDX-License-Identifier: BSD-3-Clause
"""Integers at the edges of a quantized model, in the place of float tensors."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch.fx import GraphModule, Node

from etx_quant.errors import FloatEdgeError, QuantizationError

__all__ = ["Integers", "quantize_edges"]

ALL = None
quantized = torch.ops.quantized_decomposed
QUANTIZE = quantized.quantize_per_tensor.default
DEQUANTIZE = quantized.dequantize_per_tensor.default


@dataclass(frozen=True)
class Integers:
    """What the integers of an input or a result mean: value = (integer - zero_point) * scale."""

    scale: float
    zero_point: int
    least: int
    most: int
    dtype: torch.dtype


def quantize_edges(
    model: GraphModule,
    inputs: Collection[int] | None = ALL,
    outputs: Collection[int] | None = ALL,
) -> tuple[dict[int, Integers], dict[int, Integers]]:
    """Let a statically quantized model take and return integers; the module is changed.

    ``inputs`` and ``outputs`` are indices of float tensors, all by default, none if empty. Returns
    what the integers mean, by index: quantize an input by it before a call, dequantize a result.

    Raises QuantizationError for a tensor that the model does not quantize at once, or whose
    quantization does not come last.
    """
    placeholders = [node for node in model.graph.nodes if node.op == "placeholder"]
    (end,) = (node for node in model.graph.nodes if node.op == "output")
    results = list(end.args[0])
    taken = {i: placeholders[i] for i in _chosen(inputs, placeholders, "input")}
    given = {i: results[i] for i in _chosen(outputs, results, "output")}
    ins = {i: _parameters(_reader(node, i)) for i, node in taken.items()}
    outs = {i: _parameters(_last(node, i)) for i, node in given.items()}
    for i, node in taken.items():
        for user in list(node.users):
            user.replace_all_uses_with(node)
            model.graph.erase_node(user)
        _retype(node, ins[i].dtype)
    for i, node in given.items():
        results[i] = node.args[0]
    end.args = (type(end.args[0])(results),)
    model.graph.eliminate_dead_code()
    model.recompile()
    return ins, outs


def _chosen(indices: Collection[int] | None, nodes: list[Node], what: str) -> list[int]:
    if indices is None:
        return [i for i, node in enumerate(nodes) if _is_float(node)]
    for i in indices:
        if not 0 <= i < len(nodes) or not _is_float(nodes[i]):
            floats = [j for j, node in enumerate(nodes) if _is_float(node)]
            raise QuantizationError(f"{what} {i} is not a float tensor of the model: {floats} are")
    return list(indices)


def _is_float(node: object) -> bool:
    if not isinstance(node, Node):
        return False
    if node.target is DEQUANTIZE:
        return True
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32


def _reader(node: Node, index: int) -> Node:
    """Return the quantize operator that reads an input, the same parameters in each that does."""
    readers = list(node.users)
    if not readers:
        text = f"input {index} ({node.name}) is read by nothing"
        raise FloatEdgeError(text, "inputs")
    if any(user.target is not QUANTIZE for user in readers):
        names = ", ".join(str(user.target) for user in readers if user.target is not QUANTIZE)
        text = f"input {index} ({node.name}) is read in float by {names}"
        raise FloatEdgeError(text, "inputs")
    if len({user.args[1:] for user in readers}) > 1:
        text = f"input {index} ({node.name}) is quantized with several scales"
        raise FloatEdgeError(text, "inputs")
    return readers[0]


def _last(node: Node, index: int) -> Node:
    """Return the dequantize operator that makes a result."""
    if node.target is not DEQUANTIZE:
        text = f"output {index} ({node.name}) is made in float by {node.target}"
        raise FloatEdgeError(text, "outputs")
    return node


def _parameters(node: Node) -> Integers:
    _, scale, zero_point, least, most, dtype = node.args
    return Integers(scale, zero_point, least, most, dtype)  # type: ignore[arg-type]


def _retype(node: Node, dtype: torch.dtype) -> None:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        node.meta["val"] = value.to(dtype)
