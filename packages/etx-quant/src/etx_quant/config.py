# SPDX-License-Identifier: BSD-3-Clause
"""How activations and weights are quantized."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchao.quantization.pt2e import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
)
from torchao.quantization.pt2e.quantizer import QuantizationConfig, QuantizationSpec

from etx_quant.errors import QuantizationError
from etx_quant.observers import GroupObserver, PerTokenObserver, TableObserver
from etx_quant.ranges import RangeObserver

__all__ = [
    "QuantizationConfig",
    "get_embedding_quantization_config",
    "get_symmetric_quantization_config",
    "get_weight_quantization_config",
]
EPS = 2**-20
"""The smallest scale of an activation that is measured as it comes, and of anything in training."""

ACTIVATION_EPS = 2.0**-60
"""The smallest scale of an activation that is calibrated: float32 holds products of two."""

WEIGHT_EPS = 2**-16
"""The smallest scale of a weight, where another channel's scale is 64 times as large: int32 holds
biases in steps of it and of the activation."""

SMALL = 2.0**-115
"""The smallest scale of all but nothing: it is a normal number, and so are its neighbours."""


def get_symmetric_quantization_config(
    is_per_channel: bool = False,
    is_qat: bool = False,
    is_dynamic: bool = False,
    act_qmin: int = -128,
    act_qmax: int = 127,
    weight_qmin: int = -127,
    weight_qmax: int = 127,
) -> QuantizationConfig:
    """Return int8 with affine activations per tensor and symmetric weights.

    ``is_per_channel`` gives each output channel of a weight a scale of its own; ``is_dynamic``
    measures the range of an activation when it comes, by ``choose_qparams``, where it is otherwise
    that of the calibration; ``is_qat`` is for ``prepare_qat_pt2e``. The bounds are those of the
    quantized integers, inclusive.
    """
    activation = QuantizationSpec(
        dtype=torch.int8,
        quant_min=act_qmin,
        quant_max=act_qmax,
        qscheme=torch.per_tensor_affine,
        is_dynamic=is_dynamic,
        observer_or_fake_quant_ctr=_activation_observer(is_qat, is_dynamic),
    )
    weight = _weight(is_per_channel, is_qat, weight_qmin, weight_qmax)
    return QuantizationConfig(activation, None if is_dynamic else activation, weight, None, is_qat)


def get_weight_quantization_config(
    bits: int = 8, group_size: int | None = None, is_dynamic: bool = False
) -> QuantizationConfig:
    """Return symmetric weights of 8 or 4 bits, per output channel or per ``group_size`` inputs.

    Activations stay float; with ``is_dynamic`` each row of them is quantized to int8 by its own
    range when it comes (``choose_qparams_per_token_asymmetric``). Operators that take such weights
    are linear layers.
    """
    if bits not in (4, 8):
        raise QuantizationError(f"weights of {bits} bits: expected 8 or 4")
    if group_size is None and bits == 8:
        weight = _weight(True, False, -127, 127)
    else:
        weight = _in_groups(bits, group_size, GroupObserver, torch.per_channel_symmetric)
    # Not is_dynamic, which torchao takes for choose_qparams of a whole tensor.
    activation = QuantizationSpec(
        dtype=torch.int8,
        quant_min=-128,
        quant_max=127,
        qscheme=torch.per_channel_affine,
        observer_or_fake_quant_ctr=PerTokenObserver,
    )
    return QuantizationConfig(activation if is_dynamic else None, None, weight, None)


def get_embedding_quantization_config(
    bits: int = 8, group_size: int | None = None
) -> QuantizationConfig:
    """Return tables of embeddings of 8, 4 or 2 bits with a scale a row, or a group of a row.

    Such an embedding becomes ``quantized_decomposed::embedding_byte``, ``embedding_4bit`` or
    ``embedding_2bit``, which dequantize the rows that are asked for.
    """
    if bits not in (2, 4, 8):
        raise QuantizationError(f"an embedding of {bits} bits: expected 8, 4 or 2")
    # A scheme of its own keeps torchao from one observer for a table and a tied weight.
    table = _in_groups(bits, group_size, TableObserver, torch.per_channel_affine_float_qparams)
    return QuantizationConfig(None, None, table, None)


def _activation_observer(is_qat: bool, is_dynamic: bool) -> Any:
    if is_dynamic and is_qat:
        ranges = MovingAverageMinMaxObserver.with_args(averaging_constant=1, eps=EPS)
        return FakeQuantize.with_args(observer=ranges)
    if is_dynamic:
        return PlaceholderObserver.with_args(eps=EPS)
    if is_qat:
        return FusedMovingAvgObsFakeQuantize.with_args(
            observer=MovingAverageMinMaxObserver, eps=EPS
        )
    return RangeObserver.with_args(eps=ACTIVATION_EPS)


def _weight(
    is_per_channel: bool, is_qat: bool, weight_qmin: int, weight_qmax: int
) -> QuantizationSpec:
    if is_qat:
        # torchao calls a constructor with ch_axis only where its name says that it has one.
        ranges = MovingAveragePerChannelMinMaxObserver if is_per_channel else MinMaxObserver
        observer = (PerChannelFakeQuantize if is_per_channel else FakeQuantize).with_args(
            observer=ranges, eps=EPS
        )
    else:
        chosen = PerChannelWeights if is_per_channel else Weights
        observer = chosen.with_args(eps=WEIGHT_EPS)
    return QuantizationSpec(
        dtype=torch.int8,
        quant_min=weight_qmin,
        quant_max=weight_qmax,
        qscheme=torch.per_channel_symmetric if is_per_channel else torch.per_tensor_symmetric,
        ch_axis=0 if is_per_channel else None,
        observer_or_fake_quant_ctr=observer,
    )


def _in_groups(
    bits: int, group_size: int | None, observer: type[Any], scheme: torch.qscheme
) -> QuantizationSpec:
    if group_size is not None and not (isinstance(group_size, int) and group_size >= 2):
        raise QuantizationError(
            f"a group of {group_size!r} weights: expected a whole number, 2 or more, or None"
        )
    return QuantizationSpec(
        dtype=torch.int8,
        quant_min=-(2 ** (bits - 1)),
        quant_max=2 ** (bits - 1) - 1,
        qscheme=scheme,
        observer_or_fake_quant_ctr=observer.with_args(group_size=group_size),
    )


def _smallest(low: Tensor, high: Tensor, steps: int) -> float:
    """Return the smallest scale of a weight with these ranges of channels."""
    largest = float(torch.maximum(low.abs(), high.abs()).amax()) / steps
    return max(min(WEIGHT_EPS, largest / 64), SMALL) if largest > 0 else WEIGHT_EPS


class Weights(MinMaxObserver):  # type: ignore[misc]
    """Observes a weight of any size: what is small as a whole has a small scale."""

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Return the scale and the zero point."""
        self.eps.fill_(_smallest(self.min_val, self.max_val, self.quant_max))
        found: tuple[Tensor, Tensor] = super().calculate_qparams()
        return found


class PerChannelWeights(PerChannelMinMaxObserver):  # type: ignore[misc]
    """As `Weights`, of each channel."""

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Return the scales and the zero points."""
        self.eps.fill_(_smallest(self.min_val, self.max_val, self.quant_max))
        found: tuple[Tensor, Tensor] = super().calculate_qparams()
        return found


class PerChannelFakeQuantize(FakeQuantize):  # type: ignore[misc]
    """A fake quantization of each output channel by a scale of its own."""
