# SPDX-License-Identifier: BSD-3-Clause
"""The operators that can be quantized, and the role of their arguments: one row each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torchao.quantization.pt2e.quantizer import FixedQParamsQuantizationSpec

__all__ = [
    "CLAMPS",
    "FEATURE_NORMS",
    "FROM_MINUS_ONE_TO_ONE",
    "FROM_ZERO_TO_ONE",
    "HIDDEN",
    "NORMS",
    "ROWS",
    "Arithmetic",
    "Compared",
    "Moved",
    "Recurrent",
    "Row",
    "Split",
    "Table",
    "Weighted",
]

aten = torch.ops.aten


@dataclass(frozen=True)
class Row:
    """``is_inplace``: it writes into argument 0. ``is_xnnpack``: XNNPACK has it in int8."""

    is_inplace: bool = False
    is_xnnpack: bool = True


@dataclass(frozen=True)
class Weighted(Row):
    """Argument 0 is an activation, 1 a weight whose output channels lie on ``axis``.

    ``is_matrix``: the weight can be quantized with activations in float, or by row when they come.
    """

    axis: int = 0
    is_matrix: bool = False


@dataclass(frozen=True)
class Arithmetic(Row):
    """Its result has a range of its own, unless it is ``fixed``; tensor arguments are activations.

    What it costs is little beside a weighted operator, so it is quantized only behind others.
    ``is_sum``: it stays float where a norm reads it. ``takes_one``: only argument 0 is quantized.
    ``takes_numbers``: only where its other arguments are numbers.
    """

    fixed: FixedQParamsQuantizationSpec | None = None
    is_sum: bool = False
    takes_one: bool = False
    takes_numbers: bool = False


@dataclass(frozen=True)
class Moved(Row):
    """It moves or selects values: results and tensor arguments share one scale and zero point.

    ``of_inputs``: also of the model's inputs, as where nothing but integers is computed.
    ``adds_numbers``: a result with numbers of its own, as of a pad, has a scale of its own.
    """

    of_inputs: bool = False
    adds_numbers: bool = False


@dataclass(frozen=True)
class Compared(Row):
    """It makes truths of tensor arguments, which share one scale and zero point."""


@dataclass(frozen=True)
class Split(Row):
    """It moves values of argument 0 into several results; ``of_inputs`` as of ``Moved``."""

    of_inputs: bool = False


@dataclass(frozen=True)
class Recurrent(Row):
    """Argument 2 is a list of weights and biases; states and gates stay float.

    ``is_whole``: argument 0 and the results are quantized, too; states lie between -1 and 1.
    """

    is_whole: bool = False


@dataclass(frozen=True)
class Table(Row):
    """It selects rows of argument 0. ``is_whole``: what it selects is an activation."""

    is_whole: bool = False


def _fixed(scale: float, zero_point: int) -> FixedQParamsQuantizationSpec:
    return FixedQParamsQuantizationSpec(
        dtype=torch.int8,
        scale=scale,
        zero_point=zero_point,
        quant_min=-128,
        quant_max=127,
        qscheme=torch.per_tensor_affine,
    )


HIDDEN = -1000.0
"""What is added to a score, or stands for it, that has no part in a softmax."""
FROM_ZERO_TO_ONE = _fixed(1 / 256, -128)
FROM_MINUS_ONE_TO_ONE = _fixed(1 / 128, 0)

COMPOSED = (
    aten.adjoint.default,
    aten.alias.default,
    aten.alpha_dropout.default,
    aten.atleast_2d.default,
    aten.atleast_3d.default,
    aten.broadcast_to.default,
    aten.channel_shuffle.default,
    aten.column_stack.default,
    aten.concat.default,
    aten.concatenate.default,
    aten.detach.default,
    aten.dstack.default,
    aten.expand_as.default,
    aten.feature_alpha_dropout.default,
    aten.feature_dropout.default,
    aten.fliplr.default,
    aten.flipud.default,
    aten.hstack.default,
    aten.mT.default,
    aten.moveaxis.int,
    aten.moveaxis.intlist,
    aten.movedim.int,
    aten.movedim.intlist,
    aten.narrow.default,
    aten.numpy_T.default,
    aten.positive.default,
    aten.ravel.default,
    aten.rot90.default,
    aten.row_stack.default,
    aten.swapaxes.default,
    aten.swapdims.default,
    aten.t.default,
    aten.tile.default,
    aten.view_as.default,
    aten.vstack.default,
)
"""Moves that export keeps whole, and lowering takes apart."""
COMPOSED_SPLITS = (
    aten.dsplit.array,
    aten.dsplit.int,
    aten.hsplit.array,
    aten.hsplit.int,
    aten.tensor_split.indices,
    aten.tensor_split.sections,
    aten.unsafe_chunk.default,
    aten.unsafe_split.Tensor,
    aten.vsplit.array,
    aten.vsplit.int,
)

ROWS: dict[object, Row] = {
    aten.conv1d.default: Weighted(),
    aten.conv1d.padding: Weighted(),
    aten.conv2d.default: Weighted(),
    aten.conv2d.padding: Weighted(),
    aten.conv_transpose1d.default: Weighted(axis=1),
    aten.conv_transpose2d.input: Weighted(axis=1),
    aten.linear.default: Weighted(is_matrix=True),
    aten.embedding.default: Table(),
    aten.gru.input: Recurrent(is_xnnpack=False),
    aten.lstm.input: Recurrent(is_xnnpack=False),
    aten.rnn_relu.input: Recurrent(is_xnnpack=False),
    aten.rnn_tanh.input: Recurrent(is_xnnpack=False),
    aten.abs.default: Arithmetic(is_xnnpack=False),
    aten.adaptive_avg_pool1d.default: Arithmetic(),
    aten.adaptive_avg_pool2d.default: Arithmetic(),
    aten.add.Tensor: Arithmetic(is_sum=True),
    aten.add_.Tensor: Arithmetic(is_inplace=True, is_sum=True),
    aten.avg_pool1d.default: Arithmetic(),
    aten.avg_pool2d.default: Arithmetic(),
    aten.celu.default: Arithmetic(is_xnnpack=False),
    aten.celu_.default: Arithmetic(is_inplace=True, is_xnnpack=False),
    aten.clamp.default: Arithmetic(),
    aten.clamp_.default: Arithmetic(is_inplace=True),
    aten.div.Tensor: Arithmetic(is_xnnpack=False, takes_numbers=True),
    aten.elu.default: Arithmetic(),
    aten.elu_.default: Arithmetic(is_inplace=True),
    aten.gelu.default: Arithmetic(is_xnnpack=False),
    aten.hardshrink.default: Arithmetic(is_xnnpack=False),
    aten.hardsigmoid.default: Arithmetic(is_xnnpack=False, fixed=FROM_ZERO_TO_ONE),
    aten.hardsigmoid_.default: Arithmetic(True, False, FROM_ZERO_TO_ONE),
    aten.hardswish.default: Arithmetic(is_xnnpack=False),
    aten.hardswish_.default: Arithmetic(is_inplace=True, is_xnnpack=False),
    aten.hardtanh.default: Arithmetic(),
    aten.hardtanh_.default: Arithmetic(is_inplace=True),
    aten.leaky_relu.default: Arithmetic(),
    aten.leaky_relu_.default: Arithmetic(is_inplace=True),
    aten.log_sigmoid.default: Arithmetic(is_xnnpack=False),
    aten.mean.dim: Arithmetic(),
    aten.mish.default: Arithmetic(is_xnnpack=False),
    aten.mish_.default: Arithmetic(is_inplace=True, is_xnnpack=False),
    aten.mul.Tensor: Arithmetic(),
    aten.mul_.Tensor: Arithmetic(is_inplace=True),
    aten.neg.default: Arithmetic(is_xnnpack=False),
    aten.relu.default: Arithmetic(),
    aten.relu_.default: Arithmetic(is_inplace=True),
    aten.relu6.default: Arithmetic(),
    aten.relu6_.default: Arithmetic(is_inplace=True),
    aten.rsub.Scalar: Arithmetic(is_sum=True),
    aten.selu.default: Arithmetic(is_xnnpack=False),
    aten.selu_.default: Arithmetic(is_inplace=True, is_xnnpack=False),
    aten.sigmoid.default: Arithmetic(fixed=FROM_ZERO_TO_ONE),
    aten.sigmoid_.default: Arithmetic(is_inplace=True, fixed=FROM_ZERO_TO_ONE),
    aten.silu.default: Arithmetic(is_xnnpack=False),
    aten.silu_.default: Arithmetic(is_inplace=True, is_xnnpack=False),
    aten.softplus.default: Arithmetic(is_xnnpack=False),
    aten.softshrink.default: Arithmetic(is_xnnpack=False),
    aten.sub.Tensor: Arithmetic(is_sum=True),
    aten.sub_.Tensor: Arithmetic(is_inplace=True, is_sum=True),
    aten.sum.dim_IntList: Arithmetic(is_xnnpack=False),
    aten.tanh.default: Arithmetic(fixed=FROM_MINUS_ONE_TO_ONE),
    aten.tanh_.default: Arithmetic(is_inplace=True, fixed=FROM_MINUS_ONE_TO_ONE),
    aten.threshold.default: Arithmetic(is_xnnpack=False),
    aten.amax.default: Moved(is_xnnpack=False),
    aten.amin.default: Moved(is_xnnpack=False),
    aten.cat.default: Moved(),
    aten.clone.default: Moved(),
    aten.contiguous.default: Moved(),
    aten.dropout.default: Moved(),
    aten.expand.default: Moved(),
    aten.flatten.using_ints: Moved(),
    aten.flip.default: Moved(),
    aten.gather.default: Moved(is_xnnpack=False),
    aten.index.Tensor: Moved(is_xnnpack=False),
    aten.index_select.default: Moved(is_xnnpack=False),
    aten.max_pool1d.default: Moved(),
    aten.max_pool2d.default: Moved(),
    aten.maximum.default: Moved(is_xnnpack=False),
    aten.minimum.default: Moved(is_xnnpack=False),
    aten.pad.default: Moved(),
    aten.permute.default: Moved(),
    aten.pixel_shuffle.default: Moved(),
    aten.pixel_unshuffle.default: Moved(is_xnnpack=False),
    aten.repeat.default: Moved(),
    aten.reshape.default: Moved(),
    aten.roll.default: Moved(is_xnnpack=False),
    aten.select.int: Moved(),
    aten.slice.Tensor: Moved(),
    aten.squeeze.default: Moved(),
    aten.squeeze.dim: Moved(),
    aten.squeeze.dims: Moved(),
    aten.stack.default: Moved(),
    aten.transpose.int: Moved(),
    aten.unflatten.int: Moved(),
    aten.unsqueeze.default: Moved(),
    aten.upsample_bilinear2d.vec: Moved(),
    aten.upsample_nearest1d.vec: Moved(),
    aten.upsample_nearest2d.vec: Moved(),
    aten.view.default: Moved(),
    **dict.fromkeys(COMPOSED, Moved()),
    aten.chunk.default: Split(),
    **dict.fromkeys(COMPOSED_SPLITS, Split()),
    aten.split.Tensor: Split(),
    aten.split_with_sizes.default: Split(),
    aten.unbind.int: Split(),
}

CLAMPS = frozenset(
    {
        aten.clamp.default,
        aten.clamp_.default,
        aten.hardtanh.default,
        aten.hardtanh_.default,
        aten.relu.default,
        aten.relu_.default,
        aten.relu6.default,
        aten.relu6_.default,
    }
)
"""Taken in by the operator before them: only their result is quantized, its bounds are theirs."""

NORMS = frozenset({aten.batch_norm.default})
"""Taken in by the convolution before them, in quantization-aware training."""

FEATURE_NORMS = frozenset({aten.layer_norm.default, aten.rms_norm.default, aten.group_norm.default})
"""Read in float, each row or group by a range of its own: so does a sum stay that one reads."""
