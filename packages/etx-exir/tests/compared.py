# SPDX-License-Identifier: BSD-3-Clause
"""Decompositions against eager, on calls of operators wherever they come from."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy
import torch
from torch._ops import OpOverload
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import SEED
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

TOLERANCE = {
    torch.float32: 2e-6,
    torch.float64: 1e-12,
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
}


def compare(
    function: Callable[..., Any], op: Callable[..., Any], *args: Any, scale: float = 1, **named: Any
) -> None:
    """Compare all results, of numbers about as large as `scale`."""
    actual, expected = function(*args, **named), op(*args, **named)
    pairs = zip(pytree.tree_leaves(actual), pytree.tree_leaves(expected), strict=True)
    for answer, correct in pairs:
        step = TOLERANCE.get(correct.dtype, 0)
        torch.testing.assert_close(answer, correct, rtol=step, atol=step * scale, equal_nan=True)


class Compared(TorchDispatchMode):
    """Compare each call of an operator of the table."""

    def __init__(self, table: Mapping[OpOverload, Callable[..., Any]]) -> None:
        super().__init__()
        self.table = table
        self.calls: Counter[OpOverload] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in self.table:
            self.calls[func] += 1
            compare(self.table[func], func, *args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def seeded_samples(info: OpInfo, dtype: torch.dtype, backward: bool = False) -> Iterator[Any]:
    """Yield what `info.sample_inputs` does, without the stacks that it formats for each."""
    samples = iter(info.sample_inputs_func(info, "cpu", dtype, backward))
    while True:
        torch.default_generator.manual_seed(SEED)
        random.seed(SEED)
        numpy.random.seed(SEED)
        try:
            sample = next(samples)
        except StopIteration:
            return
        yield sample


def run_samples(name: str, dtype: torch.dtype, backward: bool = False, stride: int = 1) -> None:
    """Run every OpInfo of that name on its samples, a `stride`-th of them, and their gradients."""
    for info in (info for info in op_db if info.name == name):
        samples = list(seeded_samples(info, dtype, backward))
        for sample in samples[::stride]:
            result = info(sample.input, *sample.args, **sample.kwargs)
            if backward:
                (result * torch.randn_like(result)).sum().backward()
