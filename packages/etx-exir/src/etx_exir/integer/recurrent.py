# SPDX-License-Identifier: BSD-3-Clause
"""``etx::weight_only_lstm``, ``gru`` and ``rnn``: recurrent layers with int8 or int4 weights.

Weights are packed as those of ``weight_only_linear``, int4 in uint8; scales as those of its
groups, of int8 of one group. All else is float32 and as the layer with float weights has it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from etx_exir.ir.own_ops import define
from etx_exir.ir.packed_weights import unpack, unpack_groups, unpack_int4
from etx_exir.ir.recurrent import GRU, LSTM, RNN

__all__ = ["SCALES", "WEIGHT_ONLY"]

SCALES = {"input_weight": "input_scales", "weight": "scales", "projection": "projection_scales"}
"""Of each matrix, the argument behind it."""
_LAYER = (
    "Tensor input_weight, Tensor input_scales, Tensor weight, Tensor scales,"
    " Tensor? input_bias, Tensor? bias"
)
_ORDER = "bool is_batch_first, bool is_reverse"


_GATES = {LSTM: 4, GRU: 3, RNN: 1}


def _dequantized(packed: Tensor, scales: Tensor, rows: int, columns: int) -> Tensor:
    """Return the matrix that `packed` stands for."""
    is_int4 = packed.dtype is torch.uint8
    matrix = (unpack_int4 if is_int4 else unpack)(packed, rows, columns).float()
    parts = matrix.reshape(rows, scales.shape[1], -1) * unpack_groups(scales, rows).T.unsqueeze(2)
    return parts.reshape(rows, columns)


def _define(op: OpOverload, arguments: str) -> Any:
    """Return what `op` is with packed weights, and their scales behind them."""
    name = op._schema.name.partition("::")[2]
    names = [argument.rpartition(" ")[2] for argument in arguments.split(", ")]
    returned = "(Tensor, Tensor)" if len(op._schema.returns) > 1 else "Tensor"

    def call(*args: Any) -> Any:
        given = dict(zip(names, args, strict=True))
        state, cells = (given.get(name, given["state"]).shape[1] for name in ("state", "cells"))
        gates = _GATES[op] * cells
        sizes = (gates, given["input"].shape[2]), (gates, state), (state, cells)
        for matrix, size in zip(SCALES, sizes, strict=True):
            scales = given.pop(SCALES[matrix], None)
            if scales is not None:
                given[matrix] = _dequantized(given[matrix], scales, *size)
        return op(**given)

    def shape(input: Tensor, state: Tensor, cells: Tensor, *_: Any) -> Any:
        output = input.new_empty((input.shape[0], input.shape[1], state.shape[1]))
        return (output, cells.new_empty(cells.shape)) if op is LSTM else output

    return define(f"weight_only_{name}({arguments}) -> {returned}", call, shape)


WEIGHT_ONLY: dict[OpOverload, OpOverload] = {
    LSTM: _define(
        LSTM,
        f"Tensor input, Tensor state, Tensor cells, {_LAYER}, Tensor? projection,"
        f" Tensor? projection_scales, {_ORDER}",
    ),
    GRU: _define(GRU, f"Tensor input, Tensor state, {_LAYER}, {_ORDER}"),
    RNN: _define(RNN, f"Tensor input, Tensor state, {_LAYER}, {_ORDER}, bool is_relu"),
}
"""Of each layer with float weights, the one with packed weights."""
