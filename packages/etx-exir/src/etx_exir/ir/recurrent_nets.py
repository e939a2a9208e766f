# SPDX-License-Identifier: BSD-3-Clause
"""``lstm(x)``, ``gru(x)``, ``rnn(x)`` -> one operator for each layer and direction.

They are kept whole while a program is decomposed where no backend may want their products, and
become these operators before the passes run; a target without their kernels gets the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch._decomp import decompositions as torch_decompositions
from torch._ops import OpOverload
from torch.fx import Node
from torch.utils import _pytree as pytree

from etx_exir.ir.ops import MOVES_OF, Moves
from etx_exir.ir.recurrent import GRU, LSTM, RNN, fixed_length

__all__ = ["LAYERS", "NETS", "is_whole", "of_any_length"]

aten = torch.ops.aten
DEQUANTIZE = "quantized_decomposed.dequantize"
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _lstm(
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    states, cells = hx
    count = len(params) // states.shape[0]
    after: list[Tensor] = []

    def layer(x: Tensor, at: int, is_reverse: bool) -> Tensor:
        given = params[at * count : (at + 1) * count]
        biases = given[2:4] if has_biases else (None, None)
        projection = given[-1] if count % 2 else None
        output, last = LSTM(
            x, states[at], cells[at], *given[:2], *biases, projection, batch_first, is_reverse
        )
        after.append(last)
        return output  # type: ignore[no-any-return]

    output, last = _stacked(layer, input, num_layers, bidirectional, batch_first)
    return output, last, torch.stack(after)


def _of_one_state(
    op: OpOverload,
    more: Sequence[bool],
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    count = 4 if has_biases else 2

    def layer(x: Tensor, at: int, is_reverse: bool) -> Tensor:
        given = params[at * count : (at + 1) * count]
        biases = () if has_biases else (None, None)
        return op(x, hx[at], *given, *biases, batch_first, is_reverse, *more)  # type: ignore[no-any-return]

    return _stacked(layer, input, num_layers, bidirectional, batch_first)


def _stacked(
    layer: Callable[[Tensor, int, bool], Tensor],
    x: Tensor,
    num_layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """Return the output of the last layer, and the states after the last step of each."""
    directions, after = 2 if bidirectional else 1, []
    for first in range(0, num_layers * directions, directions):
        ways = [layer(x, first + way, way == 1) for way in range(directions)]
        after += [y.select(int(batch_first), -1 if i == 0 else 0) for i, y in enumerate(ways)]
        x = torch.cat(ways, -1) if bidirectional else ways[0]
    return x, torch.stack(after)


def _lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    x = input.unsqueeze(0)
    output, after = LSTM(x, *hx, w_ih, w_hh, b_ih, b_hh, None, False, False)
    return output.squeeze(0), after


def _cell(
    op: OpOverload,
    more: Sequence[bool],
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    output = op(input.unsqueeze(0), hx, w_ih, w_hh, b_ih, b_hh, False, False, *more)
    return output.squeeze(0)  # type: ignore[no-any-return]


LAYERS: dict[OpOverload, Callable[..., Any]] = {
    aten.lstm.input: _lstm,
    aten.gru.input: partial(_of_one_state, GRU, ()),
    aten.rnn_tanh.input: partial(_of_one_state, RNN, (False,)),
    aten.rnn_relu.input: partial(_of_one_state, RNN, (True,)),
    aten.lstm_cell.default: _lstm_cell,
    aten.gru_cell.default: partial(_cell, GRU, ()),
    aten.rnn_tanh_cell.default: partial(_cell, RNN, (False,)),
    aten.rnn_relu_cell.default: partial(_cell, RNN, (True,)),
}


def _of_fixed_length(steps: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        fixed_length(args[0], args[-1])
        return steps(*args)

    return call


NETS: dict[OpOverload, Callable[..., Any]] = {
    aten.lstm.input: _of_fixed_length(torch_decompositions.lstm_impl),
    aten.gru.input: _of_fixed_length(torch_decompositions.gru_impl),
    aten.rnn_tanh.input: _of_fixed_length(torch_decompositions.rnn_tanh_input),
    aten.rnn_relu.input: _of_fixed_length(torch_decompositions.rnn_relu_input),
}
"""What whole nets are as steps."""


def is_whole(node: Node) -> bool:
    """Tell whether a layer's weights are stored, as they are or quantized, in a dtype of kernels.

    Dropout between layers is not among these.
    """
    tensors = [leaf for leaf in pytree.tree_leaves(node.args) if isinstance(leaf, Node)]
    dtypes = {item.meta["val"].dtype for item in tensors}
    params = [leaf for leaf in pytree.tree_leaves(node.args[2:]) if isinstance(leaf, Node)]
    dropout, train = node.args[5:7] if node.target in NETS else (0.0, False)
    stored = all(map(_is_stored, params))
    return stored and len(dtypes) == 1 and dtypes <= {*DTYPES} and not (train and dropout)


def _is_stored(node: Any) -> bool:
    while MOVES_OF.get(node.target) is Moves.RESHAPE or str(node.target).startswith(DEQUANTIZE):
        node = node.args[0]
    return node.op == "placeholder"  # type: ignore[no-any-return]


@contextmanager
def of_any_length() -> Iterator[None]:
    """Let torch trace recurrent nets over sequences whose length is a symbol.

    It takes the sizes of their results from the steps otherwise, whose number would be a constant.
    """
    tables: list[dict[Any, Any]] = [op.py_kernels for op in NETS]
    tables.append(decomposition_table)
    kept = [dict(table) for table in tables]
    try:
        for op in NETS:
            for key, steps in op.py_kernels.items():
                op.py_kernels[key] = partial(_sizes, steps)
            decomposition_table[op] = partial(_sizes, decomposition_table[op])
            op._dispatch_cache.clear()
        yield
    finally:
        for table, items in zip(tables, kept, strict=True):
            table.update(items)
        for op in NETS:
            op._dispatch_cache.clear()


def _sizes(steps: Callable[..., Any], input: Tensor, hx: Any, *rest: Any) -> tuple[Tensor, ...]:
    *_, is_bidirectional, is_batch_first = rest
    axis = int(is_batch_first)
    if isinstance(input.shape[axis], int):
        return steps(input, hx, *rest)  # type: ignore[no-any-return]
    states = (hx,) if isinstance(hx, Tensor) else tuple(hx)
    width = states[0].shape[2] * (2 if is_bidirectional else 1)
    output = input.new_empty((input.shape[axis], input.shape[1 - axis], width))
    after = [state.new_empty(state.shape) for state in states]
    return (output.transpose(0, 1) if is_batch_first else output, *after)
