# SPDX-License-Identifier: BSD-3-Clause
"""``etx::lstm``, ``etx::gru`` and ``etx::rnn``: a layer of a recurrent net, in one direction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decompositions as torch_decompositions
from torch._ops import OpOverload

from etx_exir.errors import LoweringError
from etx_exir.ir.own_ops import define

__all__ = ["GRU", "LSTM", "RNN", "STEPS", "fixed_length"]

_WEIGHTS = "Tensor input_weight, Tensor weight, Tensor? input_bias, Tensor? bias"
_ORDER = "bool is_batch_first, bool is_reverse"


def _lstm(
    input: Tensor,
    state: Tensor,
    cells: Tensor,
    input_weight: Tensor,
    weight: Tensor,
    input_bias: Tensor | None,
    bias: Tensor | None,
    projection: Tensor | None,
    is_batch_first: bool,
    is_reverse: bool,
) -> tuple[Tensor, Tensor]:
    """Return the state after each step, and the cells after the last.

    Input (T, N, I), or (N, T, I) where the batch comes first, and so the result with P for I; state
    (N, P), cells (N, H); weights (4H, I) and (4H, P), biases (4H); projection (P, H), without it P
    is H. All are float32, float16 or bfloat16. Gates: input, forget, cell, output.
    """
    fixed_length(input, is_batch_first)
    biases = () if input_bias is None else (input_bias, bias)
    last = () if projection is None else (projection,)
    layer: Any = partial(
        torch_decompositions.one_layer_lstm,
        hidden=(state, cells),
        params=[input_weight, weight, *biases, *last],
        has_biases=input_bias is not None,
        reverse=is_reverse,
    )
    output, (_, after) = layer(_by_steps(input, is_batch_first))
    return _by_steps(output, is_batch_first), after


def _of_one_state(
    cell: Callable[..., Tensor],
    input: Tensor,
    state: Tensor,
    input_weight: Tensor,
    weight: Tensor,
    input_bias: Tensor | None,
    bias: Tensor | None,
    is_batch_first: bool,
    is_reverse: bool,
) -> Tensor:
    """Return the state after each step; shapes are those of `_lstm` without projection."""
    fixed_length(input, is_batch_first)
    layer: Any = torch_decompositions.one_layer_rnn
    params = [input_weight, weight, input_bias, bias]
    steps = _by_steps(input, is_batch_first)
    output, _ = layer(steps, state, params, input_bias is not None, cell, is_reverse)
    return _by_steps(output, is_batch_first)


def _gru(*args: Any) -> Tensor:
    """Return the state after each step. Gates: reset, update, new."""
    return _of_one_state(torch_decompositions.gru_cell, *args)


def _rnn(*args: Any) -> Tensor:
    """Return the state after each step: tanh or relu of both products."""
    *rest, is_relu = args
    function = torch.relu if is_relu else torch.tanh
    make: Any = torch_decompositions.rnn_cell
    return _of_one_state(make(function), *rest)


def _by_steps(x: Tensor, is_batch_first: bool) -> Tensor:
    return x.transpose(0, 1) if is_batch_first else x


def fixed_length(input: Tensor, is_batch_first: bool) -> None:
    """Refuse to write a layer as steps whose number is not known."""
    if not isinstance(input.shape[int(is_batch_first)], int):
        raise LoweringError(
            "the length of its sequences must be fixed: without a kernel for the whole layer"
            " (target etx, no backend, float32, float16 or bfloat16) it is written step by step"
        )


def _shape_of(input: Tensor, state: Tensor, *_: Any) -> Tensor:
    return input.new_empty((input.shape[0], input.shape[1], state.shape[1]))


def _shapes_of_lstm(input: Tensor, state: Tensor, cells: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return _shape_of(input, state), cells.new_empty(cells.shape)


def _eager(steps: Callable[..., Any]) -> Callable[..., Any]:
    """Return `steps` with results of their own memory."""

    def call(*args: Any) -> Any:
        result = steps(*args)
        if isinstance(result, tuple):
            return tuple(each.contiguous() for each in result)
        return result.contiguous()

    return call


LSTM = define(
    f"lstm(Tensor input, Tensor state, Tensor cells, {_WEIGHTS}, Tensor? projection, {_ORDER})"
    " -> (Tensor, Tensor)",
    _eager(_lstm),
    _shapes_of_lstm,
)
GRU = define(
    f"gru(Tensor input, Tensor state, {_WEIGHTS}, {_ORDER}) -> Tensor", _eager(_gru), _shape_of
)
RNN = define(
    f"rnn(Tensor input, Tensor state, {_WEIGHTS}, {_ORDER}, bool is_relu) -> Tensor",
    _eager(_rnn),
    _shape_of,
)
STEPS: dict[OpOverload, Callable[..., Any]] = {LSTM: _lstm, GRU: _gru, RNN: _rnn}
"""What each computes by operators of torch, step after step."""
