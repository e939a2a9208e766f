# SPDX-License-Identifier: BSD-3-Clause
"""Recurrent layers in float64, and their names for tests where the compiler is not installed."""

from __future__ import annotations

from typing import Any

import torch
from integer_ops import unpack, unpack_int4
from torch import Tensor
from torch.library import Library

LAYER = "Tensor input_weight, Tensor weight, Tensor? input_bias, Tensor? bias"
PACKED = (
    "Tensor input_weight, Tensor input_scales, Tensor weight, Tensor scales, Tensor? input_bias, "
    "Tensor? bias"
)
ORDER = "bool is_batch_first, bool is_reverse"
SCHEMAS = {
    "lstm": f"Tensor input, Tensor state, Tensor cells, {LAYER}, Tensor? projection, {ORDER}",
    "gru": f"Tensor input, Tensor state, {LAYER}, {ORDER}",
    "rnn": f"Tensor input, Tensor state, {LAYER}, {ORDER}, bool is_relu",
}
for name in ("lstm", "gru", "rnn"):
    packed = SCHEMAS[name].replace(LAYER, PACKED)
    SCHEMAS[f"weight_only_{name}"] = packed.replace(
        "projection,", "projection, Tensor? projection_scales,"
    )


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = x @ weight.double().T
    return product if bias is None else product + bias.double()


def _run(cell: Any, input: Tensor, is_batch_first: bool, is_reverse: bool) -> Tensor:
    """Return what `cell` gives for the rows of each step, in the order of the steps."""
    axis = int(is_batch_first)
    steps = [x.double() for x in input.unbind(axis)]
    found = [cell(x) for x in (reversed(steps) if is_reverse else steps)]
    return torch.stack(found[::-1] if is_reverse else found, axis).to(input.dtype)


def lstm(
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
    """Return h after each step and c after the last."""
    now = [state.double(), cells.double()]

    def cell(x: Tensor) -> Tensor:
        sums = _linear(x, input_weight, input_bias) + _linear(now[0], weight, bias)
        i, f, g, o = sums.chunk(4, 1)
        now[1] = f.sigmoid() * now[1] + i.sigmoid() * g.tanh()
        now[0] = o.sigmoid() * now[1].tanh()
        if projection is not None:
            now[0] = _linear(now[0], projection, None)
        return now[0]

    return _run(cell, input, is_batch_first, is_reverse), now[1].to(cells.dtype)


def gru(
    input: Tensor,
    state: Tensor,
    input_weight: Tensor,
    weight: Tensor,
    input_bias: Tensor | None,
    bias: Tensor | None,
    is_batch_first: bool,
    is_reverse: bool,
) -> Tensor:
    """Return h after each step."""
    now = [state.double()]

    def cell(x: Tensor) -> Tensor:
        r, z, n = _linear(x, input_weight, input_bias).chunk(3, 1)
        of_r, of_z, of_n = _linear(now[0], weight, bias).chunk(3, 1)
        new = (n + (r + of_r).sigmoid() * of_n).tanh()
        z = (z + of_z).sigmoid()
        now[0] = (1 - z) * new + z * now[0]
        return now[0]

    return _run(cell, input, is_batch_first, is_reverse)


def rnn(
    input: Tensor,
    state: Tensor,
    input_weight: Tensor,
    weight: Tensor,
    input_bias: Tensor | None,
    bias: Tensor | None,
    is_batch_first: bool,
    is_reverse: bool,
    is_relu: bool,
) -> Tensor:
    """Return h after each step."""
    now = [state.double()]

    def cell(x: Tensor) -> Tensor:
        sums = _linear(x, input_weight, input_bias) + _linear(now[0], weight, bias)
        now[0] = sums.relu() if is_relu else sums.tanh()
        return now[0]

    return _run(cell, input, is_batch_first, is_reverse)


def dequantized(
    packed: Tensor | None, scales: Tensor | None, rows: int, depth: int
) -> Tensor | None:
    if packed is None or scales is None:
        return None
    groups = scales.shape[1]
    whole = (unpack_int4 if packed.dtype is torch.uint8 else unpack)(packed, rows, depth)
    own = scales.double().transpose(0, 1).reshape(groups, -1)[:, :rows].T
    parts = whole.double().reshape(rows, groups, depth // groups) * own[..., None]
    return parts.reshape(rows, depth)


def weight_only_lstm(input: Tensor, state: Tensor, cells: Tensor, *rest: Any) -> Any:
    w, w_scales, r, r_scales, *biases, p, p_scales, is_batch_first, is_reverse = rest
    rows = 4 * cells.shape[1]
    weights = (
        dequantized(w, w_scales, rows, input.shape[2]),
        dequantized(r, r_scales, rows, state.shape[1]),
    )
    projection = dequantized(p, p_scales, state.shape[1], cells.shape[1])
    return lstm(input, state, cells, *weights, *biases, projection, is_batch_first, is_reverse)


def of_one_state(cell: Any, gates: int, input: Tensor, state: Tensor, *rest: Any) -> Tensor:
    w, w_scales, r, r_scales, *more = rest
    rows, depth = gates * state.shape[1], state.shape[1]
    own = dequantized(w, w_scales, rows, input.shape[2]), dequantized(r, r_scales, rows, depth)
    result: Tensor = cell(input, state, *own, *more)
    return result


def weight_only_gru(*args: Any) -> Tensor:
    return of_one_state(gru, 3, *args)


def weight_only_rnn(*args: Any) -> Tensor:
    return of_one_state(rnn, 1, *args)


def define_operators() -> Library:
    """Register the operators, and the names for their kernels, as long as the library lives."""
    library = Library("etx", "FRAGMENT")
    for function in (lstm, gru, rnn, weight_only_lstm, weight_only_gru, weight_only_rnn):
        name = function.__name__
        outs, results = "Tensor(a!) out", "Tensor(a!)"
        if name.endswith("lstm"):
            outs, results = "Tensor(a!) out0, Tensor(b!) out1", "(Tensor(a!), Tensor(b!))"
        if not hasattr(torch.ops.etx, name):
            returned = "(Tensor, Tensor)" if name.endswith("lstm") else "Tensor"
            library.define(f"{name}({SCHEMAS[name]}) -> {returned}")
            library.impl(name, function, "CompositeExplicitAutograd")
        library.define(f"{name}.out({SCHEMAS[name]}, *, {outs}) -> {results}")
    return library
