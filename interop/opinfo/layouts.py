# SPDX-License-Identifier: BSD-3-Clause
"""Calls of kernels with tensors in rows (`R`) and in channels-last order (`C`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import dtypes
import intercept
import torch
from calls import OneCall, one_call

SHAPE = (2, 3, 4, 5)
SMALLER: tuple[tuple[int, ...], ...] = (SHAPE, (5,), ())
MOST = 4


def layouts(
    call: dtypes.Call, results_of: Callable[[Any, dict[str, Any]], list[torch.Tensor] | None]
) -> Iterator[tuple[str, OneCall]]:
    """Yield the call with each layout of its tensors, and with tensors of four dimensions.

    The text has a word an argument: its layout, or the rank of what has no layouts.
    """
    arguments = intercept.arguments_of(call.op, call.args, call.kwargs)
    names = [name for name, value in arguments.items() if isinstance(value, torch.Tensor)][:MOST]
    in_place = intercept.variant_of(call.op) is call.op
    forms: list[dict[str, Any]] = [dict(arguments)]
    for shapes in itertools.product(SMALLER, repeat=len(names)):
        if SHAPE in shapes:
            forms.append(
                arguments | {n: shaped(arguments[n], s) for n, s in zip(names, shapes, strict=True)}
            )
    for form in forms:
        wide = [name for name in names if form[name].dim() == 4]
        for chosen in itertools.product((False, True), repeat=len(wide)):
            given = dict(form)
            for name, last in zip(wide, chosen, strict=True):
                layout = torch.channels_last if last else torch.contiguous_format
                given[name] = form[name].contiguous(memory_format=layout)
            frozen = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in given.items()}
            expected = results_of(call.op, given)
            if not wide or expected is None or any(x.dtype not in dtypes.DTYPES for x in expected):
                continue
            try:
                made = one_call(call.op, frozen if in_place else given, expected)
            except Exception:
                continue
            words = [f"{name}={word(frozen[name])}" for name in names]
            words += [f"out={word(x)}" for x in expected[:1]]
            yield " ".join(words), made


def shaped(value: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return numbers of `value` in another shape."""
    if not value.numel():
        return value.new_ones(shape)
    count = math.prod(shape)
    return value.flatten().repeat(-(-count // value.numel()))[:count].reshape(shape).clone()


def word(tensor: torch.Tensor) -> str:
    if tensor.dim() != 4:
        return str(tensor.dim())
    return "R" if tensor.is_contiguous() else "C"
