# SPDX-License-Identifier: BSD-3-Clause
import torch
from programs import Calls, counts, fitted

INTS = torch.tensor([[-7, 7, 5, -5], [1 << 60, -(1 << 60), 2**53 + 1, 0]])
BY = torch.tensor([[3, -3, -2, 2], [-3, 3, 1 << 40, -1]])


def test_shifts_are_bound_unless_their_counts_are_known():
    shift = torch.bitwise_left_shift
    assert "aten.where.self" in counts(fitted(Calls(shift), (BY, INTS % 99)))
    held = Calls(lambda self, x: shift(x, self.n), n=torch.arange(4))
    assert "aten.where.self" not in counts(fitted(held, (BY,)))


def test_a_number_of_places_is_at_most_all_of_them():
    right = fitted(Calls(lambda x: torch.bitwise_right_shift(x, 70)), (BY,))
    (node,) = right.graph.find_nodes(
        op="call_function", target=torch.ops.aten.bitwise_right_shift.Tensor_Scalar
    )
    assert node.args[1] == 63
