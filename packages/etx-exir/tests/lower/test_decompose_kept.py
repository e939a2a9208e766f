# SPDX-License-Identifier: BSD-3-Clause
"""What was kept whole for a backend that did not take it is decomposed after all."""

import pytest
import torch
from etx_exir.lower.decompose import decompose
from etx_exir.lower.lower import lower_kept
from etx_exir.lower.verify import Dialect, verify
from programs import Calls, assert_like_eager, counts

aten = torch.ops.aten
X = torch.randn(3, 4)
CASES = {
    "one result": (aten.hardswish.default, torch.nn.functional.hardswish),
    "several results": (aten.aminmax.default, lambda x: torch.aminmax(x, dim=1)),
    "one of several": (aten.aminmax.default, lambda x: torch.aminmax(x, dim=1)[1]),
}


def kept(op, function):
    program = torch.export.export(Calls(function), (X,))
    return decompose(program, [op])


@pytest.mark.parametrize("name", CASES)
def test_its_decomposition_takes_its_place(name):
    op, function = CASES[name]
    program = kept(op, function)
    assert counts(program)[str(op)] == 1
    lower_kept(program, [op])
    assert str(op) not in counts(program)
    verify(program, Dialect.CORE)
    assert_like_eager(program, Calls(function), (X,))


def test_an_lstm_is_taken_apart_as_it_would_have_been():
    """Not to mkldnn_rnn_layer, which torch chooses where it computes itself."""
    op, model = aten.lstm.input, torch.nn.LSTM(4, 5).eval()
    program = decompose(torch.export.export(model, (X,)), [op])
    assert counts(program)[str(op)] == 1
    lower_kept(program, [op])
    verify(program, Dialect.CORE)
    assert_like_eager(program, model, (X,))


def test_what_a_filter_names_stays():
    op = aten.hardswish.default
    program = kept(op, lambda x: (torch.nn.functional.hardswish(x), x.exp()))
    lower_kept(program, [op], lambda node: node.args[0].op == "placeholder")
    assert counts(program)[str(op)] == 1
