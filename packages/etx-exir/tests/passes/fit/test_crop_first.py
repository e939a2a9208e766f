# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from programs import Calls, counts, fitted
from torch.nn import functional as F

PADS = {
    "both sides": [-1, -2],
    "one of each": [-1, 2, 3, -1],
    "in the middle": [0, 0, -2, 1],
    "nothing left": [-3, -4],
}


@pytest.mark.parametrize("pads", PADS.values(), ids=PADS)
def test_what_is_cropped_is_taken_before(pads):
    program = fitted(Calls(lambda x: F.pad(x, pads, value=2.5)), (torch.randn(2, 5, 7),))
    assert counts(program)["aten.slice_copy.Tensor"] >= 1
    kept = [n for n in program.graph.nodes if n.target is torch.ops.aten.constant_pad_nd.default]
    assert all(min(node.args[1]) >= 0 for node in kept)


def test_what_is_only_padded_stays():
    program = fitted(Calls(lambda x: F.pad(x, [1, 2])), (torch.randn(3),))
    assert counts(program) == {"aten.constant_pad_nd.default": 1}
