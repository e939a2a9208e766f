# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's test: calls of the operator that eager and the plugin both make."""

from __future__ import annotations

import torch
from case import F32, Case
from soft_clip.operator import soft_clip
from torch.library import Library
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

OUT = Library("demo", "FRAGMENT")
OUT.define("soft_clip.out(Tensor x, float limit, *, Tensor(a!) out) -> Tensor(a!)")


def samples(info, device, dtype, requires_grad, **kwargs):
    for shape in ((), (3,), (2, 0), (2, 5)):
        yield SampleInput(9 * torch.randn(shape, dtype=dtype), 3.0)


SOFT_CLIP = OpInfo("soft_clip", op=soft_clip._opoverload, dtypes={F32}, sample_inputs_func=samples)
CASES = [Case("soft_clip", dtypes=(F32,), own=SOFT_CLIP)]
