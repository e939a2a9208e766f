# SPDX-License-Identifier: BSD-3-Clause
import torch
from programs import Calls, fitted


def test_numbers_beside_halves_are_rounded():
    program = fitted(Calls(lambda x: (x == 0.1, x > 1e6)), (torch.full((4,), 0.1).half(),))
    (node,) = program.graph.find_nodes(op="call_function", target=torch.ops.aten.eq.Scalar)
    assert node.args[1] == torch.tensor(0.1).half().item()


def test_factors_of_bytes_are_bytes():
    x = torch.arange(250, 256, dtype=torch.uint8)
    program = fitted(Calls(lambda x: (torch.add(x, x, alpha=-3), torch.sub(x, x, alpha=-3))), (x,))
    for target in (torch.ops.aten.add.Tensor, torch.ops.aten.sub.Tensor):
        (node,) = program.graph.find_nodes(op="call_function", target=target)
        assert node.kwargs["alpha"] == 253
