# SPDX-License-Identifier: BSD-3-Clause
"""ETRecords and dumps cross: either Inspector says the same of either side's files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from forked import call

SIDES = ("etx", "executorch")


@pytest.fixture(scope="module")
def read(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what each side reads: by reader, then by writer."""
    folder = tmp_path_factory.mktemp("records")

    def run(side: str, what: str) -> str:
        return call(request.config, "--both", "etrecord.py", side, what, folder)

    for side in SIDES:
        run(side, "write")
    return {side: json.loads(run(side, "read").splitlines()[-1]) for side in SIDES}


@pytest.mark.parametrize("writer", SIDES)
def test_both_see_the_same_rows(read: Any, writer: str) -> None:
    ours, theirs = (read[side][writer] for side in SIDES)
    assert ours["handles"] == theirs["handles"]
    assert ours["programs"] == theirs["programs"] == [True, True]
    assert ours["rows"] == theirs["rows"]


def test_gaps_of_their_files(read: Any) -> None:
    ours, theirs = (read[side]["executorch"]["gaps"] for side in SIDES)
    assert [row[:2] for row in ours] == [row[:2] for row in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine[2] == pytest.approx(other[2], rel=1e-3, abs=1e-12)


def test_gaps_of_our_files(read: Any) -> None:
    """Theirs compares a convolution that took in its norm with the convolution."""
    rows = {row[1][0]: row for row in read["etx"]["etx"]["gaps"]}
    assert rows["native_call_convolution.out"][0][-1] == "batch_norm"
    assert max(row[2] for row in rows.values()) < 1e-10
    other = {row[1][0]: row for row in read["executorch"]["etx"]["gaps"]}
    assert other["native_call_linear.out"][2] < 1e-10
