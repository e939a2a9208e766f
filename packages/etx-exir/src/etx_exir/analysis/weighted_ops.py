# SPDX-License-Identifier: BSD-3-Clause
"""Layers with a weight and a bias: linear, convolution, transposed convolution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from etx_exir.analysis.constant_expressions import INSTRUCTION_BYTES
from etx_exir.ir.constants import Constants

aten = torch.ops.aten

BATCH_NORM = aten._native_batch_norm_legit_no_training.default
CONV = aten.convolution.default
LINEAR = aten.linear.default
LAYERS = (CONV, LINEAR)


def channel_dim(layer: Node) -> int:
    """Return the dimension of the result that has an element for each of the bias."""
    rank: int = layer.meta["val"].dim()
    return rank - 1 if layer.target == LINEAR else rank - weight_rank(layer) + 1


def weight_rank(layer: Node) -> int:
    """Return the number of dimensions of the weight of `layer`."""
    weight: Any = layer.args[1]
    rank: int = weight.meta["val"].dim()
    return rank


def channels(layer: Node) -> int:
    """Return the number of output channels of `layer`."""
    count: int = layer.meta["val"].shape[channel_dim(layer)]
    return count


def parameters(
    layer: Node, constants: Constants, alike: Callable[[Node], bool] | None = None
) -> tuple[Tensor, Tensor | None] | str:
    """Return weight and bias, or why nothing can take their place: one is not a constant, or the
    file would hold both weights.

    Other readers of the weight that are `alike` will read the new one too.
    """
    weight_node: Any = layer.args[1]
    bias_node: Any = layer.args[2] if len(layer.args) > 2 else None
    weight, bias = constants.get(weight_node), constants.get(bias_node)
    if weight is None or not weight.is_floating_point() or (bias is None) != (bias_node is None):
        return "its weight and bias are not constants of floating point"
    if weight.nbytes > INSTRUCTION_BYTES:
        others = [reader for reader in constants.readers(weight_node) if reader is not layer]
        if any(alike is None or not alike(reader) for reader in others):
            return "another operator reads the weight, which would be stored twice"
        if constants.is_shared(weight_node) and alike is None:
            return "another method holds the weight, which would be stored twice"
    return weight, bias


def same_normalisation(layer: Node, norm: Node, constants: Constants) -> bool:
    """Whether only a batch norm with the parameters of `norm` reads what `layer` computes."""
    other = next(iter(layer.users), None)
    if other is None or len(layer.users) > 1 or other.target != norm.target:
        return False
    pairs: Any = zip(other.args[1:5], norm.args[1:5], strict=True)
    return other.args[5:] == norm.args[5:] and all(_same(a, b, constants) for a, b in pairs)


def _same(one: Node | None, other: Node | None, constants: Constants) -> bool:
    a, b = constants.get(one), constants.get(other)
    return a is b or (a is not None and b is not None and a.data_ptr() == b.data_ptr())


def normalisation(norm: Node, constants: Constants) -> tuple[Tensor, Tensor] | str:
    """Return factor and offset of each channel of a batch norm, float64, or what it lacks."""
    given: Any = norm.args[1:5]
    values = [None if arg is None else constants.get(arg) for arg in given]
    if any(value is None and arg is not None for value, arg in zip(values, given, strict=True)):
        return "the batch norm's parameters are not constants"
    scale, shift, mean, variance = values
    assert mean is not None
    assert variance is not None
    eps: Any = norm.args[6]
    factor = torch.rsqrt(variance.double() + eps)
    factor = factor if scale is None else factor * scale
    offset = -mean * factor if shift is None else shift - mean * factor
    return factor, offset


def compute_dtype(weight: Tensor) -> torch.dtype:
    """Return the dtype in which to scale `weight`: its own, at least float32."""
    return torch.promote_types(weight.dtype, torch.float32)


def scaled_outputs(weight: Tensor, factor: Tensor, layer: Node) -> Tensor:
    """Multiply each output channel of `weight` by its element of `factor`."""
    if layer.target == CONV and layer.args[6]:
        groups: Any = layer.args[8]
        split = weight.reshape(groups, -1, *weight.shape[1:])
        shape = (groups, 1, -1, *[1] * (weight.dim() - 2))
        scaled: Tensor = (split * factor.reshape(shape)).flatten(0, 1)
        return scaled
    return weight * factor.reshape(-1, *[1] * (weight.dim() - 1))


def same_kind(before: Tensor, after: Tensor) -> bool:
    """Whether `after`, a multiple of `before`, is finite and zero just where `before` is."""
    if not after.numel():
        return True
    finite = all(bool(limit.isfinite()) for limit in after.aminmax())
    return finite and bool(before.count_nonzero() == after.count_nonzero())
