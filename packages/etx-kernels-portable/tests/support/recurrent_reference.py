# SPDX-License-Identifier: BSD-3-Clause
"""Recurrent layers in float64, and their names for tests where the compiler is not installed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.library import Library

LAYER = "Tensor input_weight, Tensor weight, Tensor? input_bias, Tensor? bias"
ORDER = "bool is_batch_first, bool is_reverse"
SCHEMAS = {
    "lstm": f"Tensor input, Tensor state, Tensor cells, {LAYER}, Tensor? projection, {ORDER}",
    "gru": f"Tensor input, Tensor state, {LAYER}, {ORDER}",
    "rnn": f"Tensor input, Tensor state, {LAYER}, {ORDER}, bool is_relu",
}


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


def define_operators() -> Library:
    """Register the operators, and the names for their kernels, as long as the library lives."""
    library = Library("etx", "FRAGMENT")
    for function in (lstm, gru, rnn):
        name = function.__name__
        outs, results = "Tensor(a!) out", "Tensor(a!)"
        if name == "lstm":
            outs, results = "Tensor(a!) out0, Tensor(b!) out1", "(Tensor(a!), Tensor(b!))"
        if not hasattr(torch.ops.etx, name):
            returned = "(Tensor, Tensor)" if name == "lstm" else "Tensor"
            library.define(f"{name}({SCHEMAS[name]}) -> {returned}")
            library.impl(name, function, "CompositeExplicitAutograd")
        library.define(f"{name}.out({SCHEMAS[name]}, *, {outs}) -> {results}")
    return library
