# SPDX-License-Identifier: BSD-3-Clause
"""How activations and weights are quantized."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torchao.quantization.pt2e import (
    HistogramObserver,
    MinMaxObserver,
    PerChannelMinMaxObserver,
)
from torchao.quantization.pt2e.quantizer import QuantizationSpec


@dataclass(frozen=True)
class QuantizationConfig:
    """The specifications of a quantized operator's tensors; a bias stays in float32."""

    activation: QuantizationSpec
    weight: QuantizationSpec


def get_symmetric_quantization_config(
    is_per_channel: bool = True,
    act_qmin: int = -128,
    act_qmax: int = 127,
    weight_qmin: int = -127,
    weight_qmax: int = 127,
) -> QuantizationConfig:
    """Return static int8: affine activations per tensor, symmetric weights.

    ``is_per_channel`` gives each output channel of a weight a scale of its own (axis 0).
    The bounds are those of the quantized integers, inclusive.
    """
    activation = QuantizationSpec(
        dtype=torch.int8,
        quant_min=act_qmin,
        quant_max=act_qmax,
        qscheme=torch.per_tensor_affine,
        observer_or_fake_quant_ctr=HistogramObserver.with_args(eps=2**-12),
    )
    observer = PerChannelMinMaxObserver if is_per_channel else MinMaxObserver
    weight = QuantizationSpec(
        dtype=torch.int8,
        quant_min=weight_qmin,
        quant_max=weight_qmax,
        qscheme=torch.per_channel_symmetric if is_per_channel else torch.per_tensor_symmetric,
        ch_axis=0 if is_per_channel else None,
        observer_or_fake_quant_ctr=observer.with_args(eps=2**-12),
    )
    return QuantizationConfig(activation, weight)
