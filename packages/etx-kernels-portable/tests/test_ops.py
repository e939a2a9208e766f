# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import importlib
import pkgutil
import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from case import Case, params
from intercept import Intercept
from provider import PROVIDER

FOLDER = Path(__file__).parent / "cases"
FAMILIES = [m.name for m in pkgutil.iter_modules([str(FOLDER)])]
CASES = PROVIDER.own_cases() + [
    case for f in FAMILIES for case in importlib.import_module(f"cases.{f}").CASES
]


def check(case: Case, dtype: torch.dtype, samples: Sequence[Any]) -> list[str]:
    """Return which kernels gave what eager gives on samples; fail where one did not."""
    reached: list[str] = []
    for i, sample in enumerate(samples):
        intercept = Intercept(case.tol)
        try:
            with intercept, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                case.info.op(sample.input, *sample.args, **sample.kwargs)
        except Exception as error:
            raise AssertionError(f"sample {i}: {sample.summary()}: {error}") from error
        reached += intercept.reached
    return reached


@pytest.mark.parametrize(("case", "dtype"), params(CASES))
def test_matches_eager(case: Case, dtype: torch.dtype) -> None:
    reached = check(case, dtype, case.inputs(dtype))
    if not reached and not PROVIDER.is_own:
        pytest.skip(f"{PROVIDER.library} has no kernel that {case.op} reaches with {dtype}")
    assert reached, f"no kernel was reached with {dtype}"


@pytest.mark.slow
@pytest.mark.parametrize(("case", "dtype"), params(CASES))
def test_every_sample_matches_eager(case: Case, dtype: torch.dtype) -> None:
    assert check(case, dtype, list(case.samples_of(dtype)))


def test_drawn_sample_matches_eager(drawn: int) -> None:
    """One of all samples, whichever the seed draws."""
    draw = random.Random(drawn)
    torch.manual_seed(drawn)
    case, dtype = draw.choice([row.values for row in params(CASES)])
    check(case, dtype, [draw.choice(list(case.samples_of(dtype)))])
