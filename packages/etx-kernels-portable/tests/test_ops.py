# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import importlib
import pkgutil
import warnings
from pathlib import Path

import pytest
import torch
from case import Case, params
from harness import PLUGIN
from intercept import Intercept

FOLDER = Path(__file__).parent / "cases"
FAMILIES = [m.name for m in pkgutil.iter_modules([str(FOLDER)])]
CASES = [case for f in FAMILIES for case in importlib.import_module(f"cases.{f}").CASES]


def check(case: Case, dtype: torch.dtype, every: bool) -> None:
    reached: list[str] = []
    for i, sample in enumerate(case.inputs(dtype, every)):
        intercept = Intercept(case.tol)
        try:
            with intercept, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                case.info.op(sample.input, *sample.args, **sample.kwargs)
        except Exception as error:
            raise AssertionError(f"sample {i}: {sample.summary()}: {error}") from error
        reached += intercept.reached
    assert reached, f"no kernel was reached with {dtype}"


@pytest.mark.parametrize(("case", "dtype"), params(CASES))
def test_matches_eager(case: Case, dtype: torch.dtype) -> None:
    check(case, dtype, every=False)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "dtype"), params(CASES))
def test_every_sample_matches_eager(case: Case, dtype: torch.dtype) -> None:
    check(case, dtype, every=True)


def test_every_op_has_a_case() -> None:
    missing = sorted(set(PLUGIN.kernels) - PLUGIN.called)
    assert not missing, f"no case reaches {missing}"
