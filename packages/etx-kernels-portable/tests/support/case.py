# SPDX-License-Identifier: BSD-3-Clause
"""What the kernels are tested with: PyTorch's own samples of an operator."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any

import numpy
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import SEED
from torch.testing._internal.opinfo.core import OpInfo

F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
U8, I8, I16, I32, I64, BOOL = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
)
FLOATING = (F32, F64, F16, BF16)
INTEGRAL = (I64, I32, U8)
REAL = (*FLOATING, *INTEGRAL)
ALL = (*REAL, BOOL)
CONSIDERED = 200
MOST_SAMPLES = 8
FEWER_SAMPLES = 3


@cache
def op_infos() -> dict[tuple[str, str], OpInfo]:
    return {(op.name, op.variant_test_name): op for op in op_db}


def seed_samples() -> None:
    """Seed what samples are drawn from, as OpInfo.sample_inputs does before each: that also keeps
    a trace of the stack for each kind of GPU, which costs several times what a sample does."""
    torch.default_generator.manual_seed(SEED)
    random.seed(SEED)
    numpy.random.seed(SEED)


@dataclass(frozen=True)
class Case:
    """An OpInfo by name and variant, or `own`, and the dtypes it is run with."""

    op: str
    variant: str = ""
    dtypes: tuple[torch.dtype, ...] = (F32, I64)
    tol: float | None = None
    samples: int = MOST_SAMPLES
    xfail: dict[torch.dtype, str] = field(default_factory=dict, hash=False)
    own: OpInfo | None = None

    @property
    def info(self) -> OpInfo:
        if self.own is not None:
            return self.own
        return op_infos()[self.op, self.variant]

    def inputs(self, dtype: torch.dtype) -> list[Any]:
        """Return samples spread over the first ones; fewer for dtypes after the first two."""
        found = list(islice(self.samples_of(dtype), CONSIDERED))
        count = self.samples if dtype in self.dtypes[:2] else min(self.samples, FEWER_SAMPLES)
        if len(found) <= count:
            return found
        return [found[i * len(found) // count] for i in range(count)]

    def samples_of(self, dtype: torch.dtype) -> Iterator[Any]:
        """Yield all of PyTorch's samples, the same ones after the same seed of torch."""
        samples = iter(self.info.sample_inputs_func(self.info, "cpu", dtype, False))
        while True:
            seed_samples()
            try:
                sample = next(samples)
            except StopIteration:
                return
            yield sample


def label(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def params(cases: Iterable[Case]) -> list[Any]:
    """Return a parameter set for each case and dtype; dtypes the OpInfo lacks are an error."""
    found = []
    for case in cases:
        for dtype in case.dtypes:
            name = f"{case.op}{'.' + case.variant if case.variant else ''}-{label(dtype)}"
            marks = []
            if dtype in case.xfail:
                marks = [pytest.mark.xfail(reason=case.xfail[dtype], strict=True)]
            found.append(pytest.param(case, dtype, id=name, marks=marks))
    return found
