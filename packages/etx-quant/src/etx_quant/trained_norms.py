# SPDX-License-Identifier: BSD-3-Clause
"""Batch norms in quantization-aware training, such that torchao folds those that it can.

It folds the norm behind a convolution for weights of one read, all channels in one row, and an
epsilon of 1e-5. What else there is stays a norm, and another epsilon is part of the variance.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node
from torch.nn.modules.batchnorm import _BatchNorm

from etx_quant.constants import tensor_of
from etx_quant.errors import QuantizationError
from etx_quant.norms import GROUPS, part_norm
from etx_quant.observers import store
from etx_quant.rows import NORMS, ROWS, Weighted

__all__ = ["absorb_epsilons", "check_momentum", "is_held", "restore_numbers", "spell_norms"]

aten = torch.ops.aten
EPSILON = 1e-5
"""What torchao folds norms with."""
NUMBERS = "etx_quant_norm"
"""The key of a norm's momentum and epsilon, which torchao replaces by defaults."""
VARIANCE, MOMENTUM, SMALL = 4, 6, 7
"""The places of arguments of a batch norm."""
SCALING = frozenset({aten.add.Tensor, aten.div.Tensor, aten.reshape.default, aten.sqrt.default})
"""What torchao divides the result of a scaled convolution with."""


def check_momentum(model: nn.Module) -> None:
    """Refuse norms that average over all batches: how many there were is data."""
    for name, module in model.named_modules():
        if not isinstance(module, _BatchNorm) or not module.track_running_stats:
            continue
        if module.momentum is None:
            raise QuantizationError(
                f"layer {name!r}: its momentum is None, an average over all batches, which "
                "torch.export does not capture in training; give it one, such as 0.1"
            )


def spell_norms(model: GraphModule) -> None:
    """Give norms weights, remember their numbers, and part those that torchao cannot fold."""
    layers = [n for n in model.graph.nodes if isinstance(ROWS.get(n.target), Weighted)]
    calls = Counter(str(layer.args[1].target) for layer in layers if is_held(layer.args[1]))
    for norm in [node for node in model.graph.nodes if node.target in NORMS]:
        norm.meta[NUMBERS] = norm.args[MOMENTUM], norm.args[SMALL]
        layer = norm.args[0]
        if layer in layers and not _folds(layer, norm, calls):
            part_norm(norm)
        elif layer in layers:
            _give_weights(model, norm)
    model.recompile()


def is_held(node: object) -> bool:
    """Tell whether a node reads a parameter or buffer."""
    return isinstance(node, Node) and node.op == "get_attr"


def _folds(layer: Node, norm: Node, calls: Counter[str]) -> bool:
    weight = layer.args[1]
    if not is_held(weight) or calls[str(weight.target)] > 1:  # type: ignore[union-attr]
        return False
    target: Any = layer.target
    place = GROUPS.get(target)
    is_grouped = place is not None and len(layer.args) > place and layer.args[place] != 1
    return not is_grouped and norm.args[VARIANCE] is not None


def _give_weights(model: GraphModule, norm: Node) -> None:
    """``batch_norm(x, None, None)`` -> ``batch_norm(x, ones, zeros)``."""
    variance: Any = norm.args[VARIANCE]
    like = tensor_of(model, variance)
    for place, (name, make) in enumerate((("ones", torch.ones_like), ("zeros", torch.zeros_like))):
        if norm.args[place + 1] is not None:
            continue
        with model.graph.inserting_before(norm):
            made = store(model, f"{norm.name}_{name}", make(like))
        made.meta["val"] = variance.meta["val"]
        norm.update_arg(place + 1, made)


def restore_numbers(prepared: GraphModule) -> None:
    """Give norms their momentum and epsilon back, also where a weight is scaled by theirs."""
    for norm in _norms(prepared):
        momentum, epsilon = norm.meta[NUMBERS]
        norm.update_arg(MOMENTUM, momentum)
        _set_epsilon(norm, epsilon)
    prepared.recompile()


def absorb_epsilons(prepared: GraphModule) -> None:
    """``var + eps`` -> ``(var + eps - 1e-5) + 1e-5`` of norms that torchao folds."""
    made: dict[tuple[str, float], Node] = {}
    for norm in _norms(prepared):
        epsilon, held = norm.meta[NUMBERS][1], norm.args[VARIANCE]
        scaled = _scaled_by(norm)
        if epsilon == EPSILON or not scaled:
            continue
        key = str(held.target), epsilon
        if key not in made:
            value: Tensor = (tensor_of(prepared, held) + (epsilon - EPSILON)).clamp(min=0)
            with prepared.graph.inserting_before(next(iter(prepared.graph.nodes))):
                made[key] = store(prepared, f"{norm.name}_variance", value)
            made[key].meta = dict(held.meta)
        _set_epsilon(norm, EPSILON)
        for reader in (norm, *scaled):
            reader.replace_input_with(held, made[key])
    prepared.recompile()


def _norms(model: GraphModule) -> list[Any]:
    return [n for n in model.graph.nodes if n.target in NORMS and NUMBERS in n.meta]


def _set_epsilon(norm: Node, epsilon: float) -> None:
    norm.update_arg(SMALL, epsilon)
    for added in _scaled_by(norm):
        added.update_arg(1, epsilon)


def _scaled_by(norm: Node) -> list[Node]:
    """Return the sums of variance and epsilon by which the layer before a norm is scaled."""
    found, pending = [], [norm.args[0]]
    while pending:
        node = pending.pop()
        if not isinstance(node, Node) or node.target not in SCALING:
            continue
        if node.args[0] is norm.args[VARIANCE]:
            found.append(node)
        pending += node.all_input_nodes
    return found
