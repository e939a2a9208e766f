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
from harness import PLUGIN
from intercept import Intercept, reached
from provider import PROVIDER

FOLDER = Path(__file__).parent / "cases"
FAMILIES = [m.name for m in pkgutil.iter_modules([str(FOLDER)])]
CASES = [case for f in FAMILIES for case in importlib.import_module(f"cases.{f}").CASES]


def chosen() -> list[Any]:
    """Return a parameter set for each case and dtype that the kernels under test are for: of
    another plugin, its own and those that are named like one of its kernels and reach it."""
    if PROVIDER.is_own:
        return params(CASES)
    names = {kernel.split("::")[1].partition(".")[0] for kernel in PLUGIN.kernels}
    named = [case for case in CASES if case.info.aten_name in names]
    found = [row for row in params(named) if reached(*row.values)]
    return params(PROVIDER.own_cases()) + found


ROWS = chosen()


def check(case: Case, dtype: torch.dtype, samples: Sequence[Any]) -> list[str]:
    """Return which kernels gave what eager gives on samples; fail where one did not."""
    found: list[str] = []
    for i, sample in enumerate(samples):
        intercept = Intercept(case.tol)
        try:
            with intercept, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                case.info.op(sample.input, *sample.args, **sample.kwargs)
        except Exception as error:
            raise AssertionError(f"sample {i}: {sample.summary()}: {error}") from error
        found += intercept.reached
    return found


@pytest.mark.parametrize(("case", "dtype"), ROWS)
def test_matches_eager(case: Case, dtype: torch.dtype) -> None:
    assert check(case, dtype, case.inputs(dtype)), f"no kernel was reached with {dtype}"


@pytest.mark.slow
@pytest.mark.parametrize(("case", "dtype"), ROWS)
def test_every_sample_matches_eager(case: Case, dtype: torch.dtype) -> None:
    assert check(case, dtype, list(case.samples_of(dtype)))


def test_drawn_sample_matches_eager(drawn: int) -> None:
    """One of all samples, whichever the seed draws."""
    draw = random.Random(drawn)
    torch.manual_seed(drawn)
    case, dtype = draw.choice([row.values for row in ROWS])
    check(case, dtype, [draw.choice(list(case.samples_of(dtype)))])
