# SPDX-License-Identifier: BSD-3-Clause
"""Quantization-aware training: the model is trained with the rounding that it will have."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import allow_exported_model_train_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e
from torchao.quantization.pt2e.quantizer import Quantizer

from etx_quant.checks import Batch, captured, check_model, check_quantizer
from etx_quant.config import get_symmetric_quantization_config
from etx_quant.errors import QuantizationError
from etx_quant.post_training import in_evaluation
from etx_quant.quantizer import Int8Quantizer
from etx_quant.regions import inline_regions
from etx_quant.rows import NORMS, ROWS, Weighted
from etx_quant.taken import check_taken

__all__ = ["finish_training", "prepare_training"]

OFF = {"dropout_p": 0.0, "train": False}


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
    part of it. ``eval`` and ``train`` of the result switch norms and dropouts; those inside of
    attention and of recurrent layers end with ``finish_training``.

    Raises QuantizationError for a wrong model, example or quantizer, and for a model that
    torch.export does not capture or of which nothing is quantized.
    """
    check_model(model)
    check_quantizer(quantizer, "int8")
    if not isinstance(example, tuple):
        kind = type(example).__name__
        raise QuantizationError(f"example is a {kind}; expected a tuple of arguments, (x,) for one")
    if quantizer is None:
        config = get_symmetric_quantization_config(is_per_channel=True, is_qat=True)
        quantizer = Int8Quantizer().set_global(config)
    modes = {module: module.training for module in model.modules()}
    try:
        program = captured(model.train(), Batch(example), dynamic_shapes)
    finally:
        for module, is_training in modes.items():
            module.training = is_training
    exported = program.module(check_guards=False)
    inline_regions(exported, of_gradients=False)
    _part_norms(exported)
    prepared = prepare_qat_pt2e(exported, quantizer)
    check_taken(prepared)
    result: GraphModule = allow_exported_model_train_eval(prepared)
    return result


def _part_norms(model: GraphModule) -> None:
    """Keep torchao from folding norms into a layer that is called more than once.

    It would fold them, one after another, into the one weight.
    """
    layers = [n for n in model.graph.nodes if isinstance(ROWS.get(n.target), Weighted)]
    calls = Counter(str(layer.args[1].target) for layer in layers if _is_constant(layer.args[1]))
    for layer in layers:
        if not _is_constant(layer.args[1]) or calls[str(layer.args[1].target)] == 1:
            continue
        for norm in [user for user in layer.users if user.target in NORMS]:
            with model.graph.inserting_before(norm):
                copied = model.graph.call_function(torch.ops.aten.clone.default, (layer,))
            copied.meta = dict(norm.meta)
            norm.replace_input_with(layer, copied)
    model.recompile()


def _is_constant(node: object) -> bool:
    return isinstance(node, Node) and node.op == "get_attr"


def finish_training(prepared: GraphModule) -> GraphModule:
    """Return what ``prepare_training`` made, once it is trained, as ``quantize`` returns it."""
    prepared.eval()
    _end_counts(prepared)
    converted: GraphModule = convert_pt2e(prepared)
    _end_dropouts(converted)
    return in_evaluation(converted)


def _end_counts(model: GraphModule) -> None:
    """Erase the counts of batches; torchao cannot where two calls of one norm count."""
    counts: list[Node] = []
    for node in model.graph.nodes:
        is_sum = node.target is torch.ops.aten.add_.Tensor
        source: Any = node.args[0] if is_sum else None
        is_count = _is_constant(source) and str(source.target).endswith("num_batches_tracked")
        if is_sum and (is_count or source in counts):
            counts.append(node)
    for node in reversed(counts):
        if not node.users:
            model.graph.erase_node(node)


def _end_dropouts(model: GraphModule) -> None:
    """Turn off what drops out inside of operators, which torchao does not know."""
    for node in model.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        for name, value in OFF.items():
            names = [] if schema is None else [argument.name for argument in schema.arguments]
            if name not in names:
                continue
            place = names.index(name)
            if place < len(node.args):
                node.update_arg(place, value)
            elif name in node.kwargs:
                node.update_kwarg(name, value)
    model.recompile()
