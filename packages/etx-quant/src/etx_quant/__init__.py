# SPDX-License-Identifier: BSD-3-Clause
"""Quantization of PyTorch models on torchao's pt2e flow."""

from etx_quant._version import __version__
from etx_quant.config import (
    QuantizationConfig,
    get_embedding_quantization_config,
    get_symmetric_quantization_config,
    get_weight_quantization_config,
)
from etx_quant.errors import QuantizationError
from etx_quant.layers import Layer, Report
from etx_quant.post_training import quantize, quantize_with_report
from etx_quant.quantizer import Int8Quantizer, XNNPACKQuantizer
from etx_quant.report import Difference, compare

__all__ = [
    "Difference",
    "Int8Quantizer",
    "Layer",
    "QuantizationConfig",
    "QuantizationError",
    "Report",
    "XNNPACKQuantizer",
    "__version__",
    "compare",
    "get_embedding_quantization_config",
    "get_symmetric_quantization_config",
    "get_weight_quantization_config",
    "quantize",
    "quantize_with_report",
]
