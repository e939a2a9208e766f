# SPDX-License-Identifier: BSD-3-Clause
"""Quantization of PyTorch models on torchao's pt2e flow."""

from etx_quant import _quiet  # noqa: F401  before all others import torchao
from etx_quant._version import __version__
from etx_quant.config import (
    QuantizationConfig,
    get_embedding_quantization_config,
    get_symmetric_quantization_config,
    get_weight_quantization_config,
)
from etx_quant.edges import Integers, quantize_edges
from etx_quant.errors import QuantizationError, QuantizationWarning
from etx_quant.layers import Edge, Layer, Report
from etx_quant.post_training import quantize, quantize_with_report
from etx_quant.quantizer import Int8Quantizer, XNNPACKQuantizer
from etx_quant.report import Difference, compare
from etx_quant.training import finish_training, prepare_training

__all__ = [
    "Difference",
    "Edge",
    "Int8Quantizer",
    "Integers",
    "Layer",
    "QuantizationConfig",
    "QuantizationError",
    "QuantizationWarning",
    "Report",
    "XNNPACKQuantizer",
    "__version__",
    "compare",
    "finish_training",
    "get_embedding_quantization_config",
    "get_symmetric_quantization_config",
    "get_weight_quantization_config",
    "prepare_training",
    "quantize",
    "quantize_edges",
    "quantize_with_report",
]
