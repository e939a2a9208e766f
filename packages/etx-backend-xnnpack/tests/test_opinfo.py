# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's samples through the partitioner: some of each run, drawn by ETX_SEED.

`nox -s xnnpack-samples` runs all of them.
"""

from __future__ import annotations

import os

import pytest
import torch
from etx_backend_xnnpack.nodes import TABLE
from opinfo import OUTCOMES, drawn_form, forms, infos, plain_name, reaches, run, same
from torch.testing._internal.opinfo.core import OpInfo

SEED = int(os.environ.get("ETX_SEED", "0"))
SAMPLES = int(os.environ.get("ETX_SAMPLES", "60"))


@pytest.mark.filterwarnings("ignore")
def test_drawn_samples_agree_with_eager() -> None:
    kinds = []
    for number in range(SAMPLES):
        form = drawn_form(SEED, number)
        try:
            kinds.append(run(form).kind)
        except Exception as error:
            error.add_note(f"ETX_SEED={SEED}, {number}: {form}")
            raise
    assert set(kinds) <= set(OUTCOMES)
    assert kinds.count("delegated") + kinds.count("in part") > len(kinds) // 3


@pytest.mark.filterwarnings("ignore")
def test_the_first_sample_of_each_operator_agrees_with_eager() -> None:
    """Of those operators that have the name of a lowering."""
    names = {plain_name(op) for op in TABLE}
    found = {info.name: info for info in infos() if own_name(info) in names}
    assert len(found) > 50
    for info in found.values():
        assert reaches(info)
        form = next(forms(info))
        try:
            assert run(form).kind in OUTCOMES
        except Exception as error:
            error.add_note(str(form))
            raise


def own_name(info: OpInfo) -> str:
    """Return an operator's name as ATen has it, if it does."""
    return str(info.name.removeprefix("nn.functional."))


def test_a_wrong_result_is_noticed() -> None:
    one = torch.ones(3)
    with pytest.raises(AssertionError):
        same(one * 1.001, one)
    same(one, one * 2, drawn=True)
