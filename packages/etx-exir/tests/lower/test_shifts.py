# SPDX-License-Identifier: BSD-3-Clause
"""Shifts of integers as Python writes them, for both targets."""

import etx_runtime
import pytest
import torch
from programs import Calls
from promise import executed, lowered


def shifted(x):
    y = x.abs() % 8
    return x << 1, x >> 1, x << y, x >> y, 1 << y, 100 >> y, x.clone().__ilshift__(2)


@pytest.mark.parametrize("target", ["etx", "executorch"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.int8], ids=str)
def test_as_eager(dtype, target):
    x = torch.tensor([[1, 5, -7], [9, 100, 3]]).to(dtype)
    program = torch.export.export(Calls(shifted), (x,))
    found = executed(etx_runtime.load(lowered(program, target), outputs="torch"), (x,))
    torch.testing.assert_close(tuple(found), shifted(x), rtol=0, atol=0)
