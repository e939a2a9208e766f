# SPDX-License-Identifier: BSD-3-Clause
"""Post-training static quantization in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule
from torchao.quantization.pt2e import move_exported_model_to_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import Quantizer

from etx_quant.errors import QuantizationError
from etx_quant.quantizer import Int8Quantizer


def quantize(
    model: nn.Module,
    calibration: Iterable[tuple[Any, ...]],
    quantizer: Quantizer | None = None,
    *,
    dynamic_shapes: Any = None,
) -> GraphModule:
    """Quantize ``model`` with the ranges that ``calibration`` shows.

    ``calibration`` yields tuples of arguments; the first also serves as example for
    ``torch.export``, and ``dynamic_shapes`` is passed on to it. ``quantizer`` is an
    ``Int8Quantizer()`` unless given. The result keeps quantize and dequantize operators around
    each quantized one, and its weights are int8: export it and lower it like any module.

    Raises QuantizationError when there is no calibration data, or nothing was annotated.
    """
    batches = iter(calibration)
    example = next(batches, None)
    if example is None:
        raise QuantizationError("calibration is empty: pass at least one tuple of model arguments")
    program = torch.export.export(model, example, dynamic_shapes=dynamic_shapes, strict=False)
    prepared = prepare_pt2e(program.module(check_guards=False), quantizer or Int8Quantizer())
    with torch.no_grad():
        prepared(*example)
        for arguments in batches:
            prepared(*arguments)
    converted = convert_pt2e(prepared)
    if not any("quantized_decomposed" in str(node.target) for node in converted.graph.nodes):
        raise QuantizationError(
            "the quantizer annotated no operator of the model: see etx_quant.rows.ROWS for "
            "the operators that Int8Quantizer knows"
        )
    move_exported_model_to_eval(converted)
    result: GraphModule = converted
    return result
