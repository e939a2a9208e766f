# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.errors import LoweringError
from etx_exir.lower.lower import fit
from etx_exir.target import load_target
from programs import Calls, counts, edge, fitted

LAST = torch.channels_last
IMAGE = torch.randn(2, 4, 3, 3)


@pytest.mark.parametrize(
    ("call", "copies"),
    [
        (lambda x, y: y.relu() * y, 0),
        (lambda x, y: x + y, 1),
        (lambda x, y: y + y[:1, :1, 0, 0].view(1), 3),
        (lambda x, y: y.softmax(1), 1),
        (lambda x, y: torch.cat([y, y.relu()]), 3),
        (lambda x, y: y.topk(2, 1)[0], 1),
    ],
)
def test_calls_have_the_dim_orders_that_kernels_take(call, copies):
    found = counts(fitted(Calls(call), (IMAGE, IMAGE.contiguous(memory_format=LAST))))
    assert found.get("etx_dim_order._to_dim_order_copy.default", 0) == copies


def test_inputs_of_other_orders_are_refused():
    program = edge(Calls(lambda x: x + 1), (torch.randn(3, 4).t(),))
    with pytest.raises(LoweringError, match=r"input 'args_0' has dim order \[1, 0\]"):
        fit(program, load_target("executorch"))
