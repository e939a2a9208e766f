# SPDX-License-Identifier: BSD-3-Clause
"""Images of bytes are interpolated in float32; those of floats as they are."""

import pytest
import torch
from programs import Calls
from running import edge
from torch.nn import functional as F


def targets(dtype):
    model = Calls(lambda x: F.interpolate(x, (3, 5), mode="bilinear"))
    graph = edge(model, (torch.zeros(1, 3, 8, 8, dtype=dtype),)).graph
    return [str(node.target) for node in graph.nodes if node.op == "call_function"]


def test_bytes_are_resized_as_floats():
    names = targets(torch.uint8)
    resized = names.index("aten.upsample_bilinear2d.vec")
    assert names[resized + 1 : resized + 3] == ["aten.add.Scalar", "aten.floor.default"]
    assert sum("_to_copy" in name or "_to_dim_order_copy" in name for name in names) == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_floats_stay(dtype):
    assert targets(dtype) == ["aten.upsample_bilinear2d.vec"]
