# SPDX-License-Identifier: BSD-3-Clause
"""Layers with weights in bfloat16, as support/narrow_reference.py registers them.

Inputs are numbers of bfloat16: whether a processor rounds them first makes no difference then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from case import F32, Case
from narrow_reference import define_operators
from torch import Tensor
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

DEFINED = define_operators()
LINEARS = (  # rows, depth, columns
    *((1, 8, 3), (2, 7, 5), (9, 64, 40), (33, 130, 65), (40, 33, 12), (70, 256, 100), (0, 4, 4)),
    *((12, 2, 1), (64, 1024, 33), (10, 1, 1)),
)
CONVS = (  # batch, image, channels in and out of a group, groups, kernel, stride, pad, dilation
    (2, (7, 7), 8, 12, 1, (3, 3), 1, 1, 1),
    (1, (14, 14), 6, 33, 2, (3, 3), 2, 1, 1),
    (1, (9, 11), 3, 16, 1, (7, 7), 2, 3, 1),
    (1, (8, 8), 16, 20, 1, (1, 1), 1, 0, 1),
    (2, (8, 6), 5, 4, 3, (1, 1), 1, 0, 1),
    (1, (9, 9), 64, 24, 1, (1, 1), 2, 0, 1),
    (2, (1, 1), 24, 40, 1, (1, 1), 1, 0, 1),
    (1, (2, 3), 24, 8, 1, (1, 1), 1, 0, 1),
    (1, (12, 12), 4, 8, 1, (3, 3), 1, 2, 2),
    (1, (50,), 6, 18, 1, (5,), 2, 2, 1),
    (1, (4, 5, 6), 4, 7, 1, (2, 3, 2), 1, 1, 1),
    (1, (40, 40), 2, 1, 1, (3, 3), 1, 1, 1),
    (1, (1, 1), 4, 12, 1, (3, 3), 1, 1, 1),
    (2, (9, 11), 3, 16, 2, (3, 3), 1, 1, 1),
    (2, (7, 7), 40, 24, 2, (3, 3), 1, 1, 1),
    (2, (7, 7), 65, 24, 1, (3, 3), 1, 1, 1),
    (2, (7, 7), 72, 24, 1, (1, 1), 1, 0, 1),
    (2, (14, 14), 64, 40, 1, (1, 1), 2, 0, 1),
    (1, (5, 7), 64, 13, 1, (3, 3), 1, 1, 1),
)


def half(*shape: int) -> Tensor:
    return torch.randn(shape).bfloat16()


def linears(info: Any, device: Any, dtype: Any, requires_grad: bool, **k: Any) -> Iterator[Any]:
    torch.manual_seed(0)
    for m, k_, n in LINEARS:
        x, w = half(m, k_).float(), half(n, k_)
        yield SampleInput(x, w, torch.randn(n))
        yield SampleInput(x.expand(2, m, k_), w, None)


def convs(info: Any, device: Any, dtype: Any, requires_grad: bool, **k: Any) -> Iterator[Any]:
    torch.manual_seed(0)
    for batch, image, cin, cout, groups, kernel, stride, pad, dilation in CONVS:
        rank = len(image)
        x = half(batch, cin * groups, *image).float()
        w = half(cout * groups, cin, *kernel)
        window = ([stride] * rank, [pad] * rank, [dilation] * rank, groups)
        last = w.movedim(1, -1).contiguous().movedim(-1, 1)
        yield SampleInput(x, w, torch.randn(cout * groups), *window)
        yield SampleInput(x, last, None, *window)


def case(name: str, drawn: Any) -> Case:
    full = f"etx.{name}"
    info = OpInfo(full, op=getattr(torch.ops.etx, name), dtypes={F32}, sample_inputs_func=drawn)
    return Case(full, dtypes=(F32,), tol=2e-5, samples=99, own=info)


CASES = [case("narrow_linear", linears), case("narrow_conv", convs)]
