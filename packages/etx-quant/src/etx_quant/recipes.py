# SPDX-License-Identifier: BSD-3-Clause
"""Recipes: what is quantized how, by one name."""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch

from etx_quant.config import get_embedding_quantization_config, get_weight_quantization_config
from etx_quant.errors import QuantizationError
from etx_quant.quantizer import Int8Quantizer, XNNPACKQuantizer

__all__ = ["GROUP_SIZE", "RECIPES", "quantizer_of"]

GROUP_SIZE = 32


def _int8(group_size: int | None) -> XNNPACKQuantizer:
    return Int8Quantizer()


def _int8_dynamic(group_size: int | None) -> XNNPACKQuantizer:
    return Int8Quantizer().set_global(get_weight_quantization_config(8, is_dynamic=True))


def _int8_weight(group_size: int | None) -> XNNPACKQuantizer:
    return Int8Quantizer().set_global(get_weight_quantization_config(8))


def _int4(group_size: int | None) -> XNNPACKQuantizer:
    config = get_weight_quantization_config(4, group_size, is_dynamic=True)
    return Int8Quantizer().set_global(config)


RECIPES: dict[str, Callable[[int | None], XNNPACKQuantizer]] = {
    "int8": _int8,
    "int8-dynamic": _int8_dynamic,
    "int8-weight": _int8_weight,
    "int4": _int4,
}
"""Of each recipe the quantizer for a size of groups.

``int8``: activations and weights, ranges by calibration. ``int8-dynamic``: linear layers, rows of
activations by their own range. ``int8-weight``: weights of linear layers. ``int4``: as int8-dynamic
with weights of 4 bits in groups. Tables of embeddings have 8 bits in each.
"""


def quantizer_of(
    recipe: str, group_size: int | None = GROUP_SIZE, keep_float: Collection[str] = ()
) -> XNNPACKQuantizer:
    """Return the quantizer of a recipe, without the modules of ``keep_float``."""
    if recipe not in RECIPES:
        raise QuantizationError(f"recipe {recipe!r}: expected one of {', '.join(RECIPES)}")
    quantizer = RECIPES[recipe](group_size)
    quantizer.set_operator_type(torch.ops.aten.embedding, get_embedding_quantization_config())
    for name in keep_float:
        quantizer.set_module_name(name, None)
    return quantizer
