# SPDX-License-Identifier: BSD-3-Clause
"""Normalization of groups of channels: one delegate, next to eager and quantized models."""

from __future__ import annotations

import pytest
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from test_filled import check
from torch import nn

CASES = [
    ((4, 6), 1, True),
    ((4, 6), 3, True),
    ((2, 6, 8), 2, False),
    ((1, 12, 4, 6), 12, True),
    ((3, 8, 5, 6), 4, True),
    ((2, 4, 3, 2, 5), 2, True),
]


@pytest.mark.parametrize("spec", ["TOSA-1.0+FP", "TOSA-1.0+INT"])
@pytest.mark.parametrize(("shape", "groups", "is_affine"), CASES)
def test_group_norm(shape: tuple[int, ...], groups: int, is_affine: bool, spec: str) -> None:
    torch.manual_seed(0)
    norm = nn.GroupNorm(groups, shape[1], affine=is_affine)
    if is_affine:
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    check(norm.eval(), TosaCompileSpec(spec), torch.randn(shape) * 3 + 1, steps=3)
