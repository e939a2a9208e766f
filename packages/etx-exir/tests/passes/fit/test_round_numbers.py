# SPDX-License-Identifier: BSD-3-Clause
import torch
from programs import Calls, fitted


def test_numbers_beside_halves_are_rounded():
    program = fitted(Calls(lambda x: (x == 0.1, x > 1e6)), (torch.full((4,), 0.1).half(),))
    (node,) = program.graph.find_nodes(op="call_function", target=torch.ops.aten.eq.Scalar)
    assert node.args[1] == torch.tensor(0.1).half().item()
