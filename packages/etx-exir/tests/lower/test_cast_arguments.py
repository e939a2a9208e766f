# SPDX-License-Identifier: BSD-3-Clause
"""Arguments are converted before a call only where the target's kernel does not do it."""

import torch
from etx_exir.lower.cast_arguments import CastArguments
from etx_exir.target import load_target
from programs import Calls, apply, assert_like_eager, counts, edge

COPY = "etx_dim_order._to_dim_order_copy.default"
GATHER = Calls(lambda x, i: x.gather(1, i))
INPUTS = torch.randn(2, 3), torch.tensor([[0, 2], [1, 1]], dtype=torch.int32)


def rows(name):
    return load_target(name).operators


def test_executorch_adds_no_fraction_to_whole_numbers():
    module, inputs = Calls(lambda x: x + 2.5), (torch.arange(3),)
    program = edge(module, inputs)
    assert not CastArguments(rows("etx")).run(program)
    apply(CastArguments(rows("executorch")), program)
    assert counts(program) == {COPY: 1, "aten.add.Scalar": 1}
    assert_like_eager(program, module, inputs)


def test_executorch_takes_int64_indices():
    program = edge(GATHER, INPUTS)
    assert not CastArguments(rows("etx")).run(program)
    apply(CastArguments(rows("executorch")), program)
    (copy,) = (node for node in program.graph.nodes if str(node.target) == COPY)
    assert copy.meta["val"].dtype is torch.int64
    assert_like_eager(program, GATHER, INPUTS)


def test_what_fits_stays():
    program = edge(GATHER, (INPUTS[0], INPUTS[1].long()))
    assert not CastArguments(rows("executorch")).run(program)
