# SPDX-License-Identifier: BSD-3-Clause
"""Quantization-aware training: the model is trained with the rounding that it will have."""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e
from torchao.quantization.pt2e.quantizer import Quantizer

from etx_quant.checks import Batch, captured, check_model, check_quantizer
from etx_quant.config import get_symmetric_quantization_config
from etx_quant.errors import QuantizationError
from etx_quant.modes import set_training
from etx_quant.post_training import in_evaluation
from etx_quant.quantizer import Int8Quantizer
from etx_quant.regions import inline_regions
from etx_quant.taken import check_taken
from etx_quant.trained_norms import (
    absorb_epsilons,
    check_momentum,
    is_held,
    restore_numbers,
    spell_norms,
)

__all__ = ["finish_training", "prepare_training"]


def prepare_training(
    model: nn.Module,
    example: tuple[Any, ...],
    quantizer: Quantizer | None = None,
    *,
    dynamic_shapes: Any = None,
) -> GraphModule:
    """Return ``model`` with rounding in its graph, to be trained like any module.

    ``quantizer`` is an ``Int8Quantizer`` for static int8 per channel unless given; its
    configurations are made with ``is_qat=True``. A batch norm behind a convolution is trained as a
    part of it. ``eval`` and ``train`` of the result switch norms and dropouts.

    The result has the parameters and buffers of ``model`` itself: who trains one trains both. Give
    a ``copy.deepcopy`` to keep the model as it is.

    Raises QuantizationError for a wrong model, example or quantizer, for a batch norm without a
    momentum, and for a model that torch.export does not capture or of which nothing is quantized.
    """
    check_model(model)
    check_quantizer(quantizer, "int8")
    if not isinstance(example, tuple):
        kind = type(example).__name__
        raise QuantizationError(f"example is a {kind}; expected a tuple of arguments, (x,) for one")
    if quantizer is None:
        config = get_symmetric_quantization_config(is_per_channel=True, is_qat=True)
        quantizer = Int8Quantizer().set_global(config)
    check_momentum(model)
    modes = {module: module.training for module in model.modules()}
    try:
        program = captured(model.train(), Batch(example), dynamic_shapes)
    finally:
        for module, is_training in modes.items():
            module.training = is_training
    exported = program.module(check_guards=False)
    inline_regions(exported, of_gradients=False)
    spell_norms(exported)
    prepared: GraphModule = prepare_qat_pt2e(exported, quantizer)
    restore_numbers(prepared)
    check_taken(prepared)
    prepared.train = MethodType(_train, prepared)  # type: ignore[method-assign]
    prepared.eval = MethodType(_eval, prepared)  # type: ignore[method-assign]
    return prepared


def _train(self: GraphModule, mode: bool = True) -> GraphModule:
    set_training(self, mode)
    return self


def _eval(self: GraphModule) -> GraphModule:
    return _train(self, False)


def finish_training(prepared: GraphModule) -> GraphModule:
    """Return what ``prepare_training`` made, once it is trained, as ``quantize`` returns it."""
    prepared.eval()
    absorb_epsilons(prepared)
    _end_counts(prepared)
    converted: GraphModule = convert_pt2e(prepared)
    return in_evaluation(converted)


def _end_counts(model: GraphModule) -> None:
    """Erase the counts of batches; torchao cannot where two calls of one norm count."""
    counts: list[Node] = []
    for node in model.graph.nodes:
        is_sum = node.target is torch.ops.aten.add_.Tensor
        source: Any = node.args[0] if is_sum else None
        is_count = is_held(source) and str(source.target).endswith("num_batches_tracked")
        if is_sum and (is_count or source in counts):
            counts.append(node)
    for node in reversed(counts):
        if not node.users:
            model.graph.erase_node(node)
