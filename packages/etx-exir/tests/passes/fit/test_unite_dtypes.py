# SPDX-License-Identifier: BSD-3-Clause
import torch
from programs import Calls, fitted

INTS = torch.tensor([[-7, 7, 5, -5], [1 << 60, -(1 << 60), 2**53 + 1, 0]])


def test_joined_tensors_are_of_one_dtype():
    program = fitted(Calls(lambda x, i: torch.cat([x, i])), (torch.randn(2, 4).double(), INTS))
    (node,) = program.graph.find_nodes(op="call_function", target=torch.ops.aten.cat.default)
    assert {each.meta["val"].dtype for each in node.args[0]} == {torch.float64}
