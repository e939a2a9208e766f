# SPDX-License-Identifier: BSD-3-Clause
"""Dumps cross: ExecuTorch's Inspector shows of ours the rows of its own, times apart."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from forked import call

SIDES = ("etx", "executorch")
MODELS = ("lstm", "minilm", "mobilenet_v2")
FILES = [f"{name}-{kind}" for name in MODELS for kind in ("portable", "xnnpack")]
METHODS, INPUTS = "lstm-methods", ["lstm-methods-inputs", "lstm-portable-inputs"]
HEAVY = re.compile("Fully Connected|Convolution|Batch Matrix Multiply")
PRIMS = ("native_call_sym_size.int",)
"""Operators of the runtime itself, which have a row with a name only in ours."""


@pytest.fixture(scope="module")
def read(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return rows by reader and dump: `<file>.<writer>`."""
    folder = str(tmp_path_factory.mktemp("dumps"))

    def run(option: str, *arguments: str) -> str:
        return call(request.config, option, "dumps.py", *arguments)

    run("--host", "lower", folder, *MODELS)
    for side in SIDES:
        run("--both", side, "record", folder)
    return {
        side: json.loads(run("--both", side, "read", folder).splitlines()[-1])
        for side in (*SIDES, "both")
    }


def shown(rows: Any) -> list[tuple[str, ...]]:
    """Return what is not time of rows outside of delegates."""
    return [
        (row["block"], row["name"], len(row["raw"]))
        for row in rows
        if not row["is_delegated"] and row["name"] not in PRIMS
    ]


def test_both_read_a_dump_in_one_process(read: Any) -> None:
    """And say what they say alone."""
    assert read["both"] == {side: read[side] for side in SIDES}


@pytest.mark.parametrize("file", [*FILES, METHODS])
def test_theirs_shows_the_rows_of_its_own_dump(read: Any, file: str) -> None:
    ours, theirs = (read["executorch"][f"{file}.{writer}"] for writer in SIDES)
    assert shown(ours) == shown(theirs)
    assert len(shown(ours)) >= 4
    mine, other = (
        [row["shapes"] for row in rows if row["name"] not in PRIMS and not row["is_delegated"]]
        for rows in (ours, theirs)
    )
    assert any(other)
    assert all(a == b for a, b in zip(mine, other, strict=True) if b)


@pytest.mark.parametrize("file", [file for file in FILES if file.endswith("xnnpack")])
def test_theirs_shows_what_is_in_delegates(read: Any, file: str) -> None:
    """Names are those of either side's XNNPACK, whose versions fuse other small operators."""
    ours, theirs = (
        [row for row in read["executorch"][f"{file}.{writer}"] if row["is_delegated"]]
        for writer in SIDES
    )
    found = [row["delegate"] for row in ours]
    assert len(set(found)) == len(found)
    assert all(row["delegate"] == row["name"] and len(row["raw"]) == 2 for row in ours)
    mine, other = (sum(bool(HEAVY.match(row["name"])) for row in rows) for rows in (ours, theirs))
    assert mine == other > 40


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("writer", SIDES)
def test_both_readers_say_the_same(read: Any, file: str, writer: str) -> None:
    ours, theirs = (read[side][f"{file}.{writer}"] for side in SIDES)
    assert len(ours) == len(theirs)
    for row, other in zip(ours, theirs, strict=True):
        assert row.pop("raw") == pytest.approx(other.pop("raw"), abs=1e-6)
        assert row == other


def test_ours_keeps_methods_apart(read: Any) -> None:
    """Theirs takes executions of two methods with the same operators for two runs of one."""
    ours, theirs = (read[side][f"{METHODS}.etx"] for side in SIDES)
    assert len(ours) == 2 * len(theirs)
    assert {len(row["raw"]) for row in ours if "Default" not in row["block"]} == {2}
    assert {len(row["raw"]) for row in theirs if "Default" not in row["block"]} == {4}


@pytest.mark.parametrize("file", INPUTS)
def test_runs_with_different_inputs(read: Any, file: str) -> None:
    """Theirs reads neither its own dump nor ours; ours reads both."""
    for writer in SIDES:
        assert read["executorch"][f"{file}.{writer}"] == (
            "AssertionError: Tensors Debug Data is different. Expected to be equal."
        )
        assert len(read["etx"][f"{file}.{writer}"]) > 800


@pytest.mark.parametrize("file", [*FILES, METHODS])
def test_dumps_with_threads_are_read(read: Any, file: str) -> None:
    """The events of threads are in fields that theirs does not have; no time goes missing."""
    assert set(read["etx"]["lanes"][f"{file}.threads"]) <= {0, 1}  # one may end a loop alone
    times: list[Counter[str]] = []
    for side in SIDES:
        times.append(Counter())
        for row in read[side][f"{file}.threads"]:
            times[-1][row["name"]] += sum(row["raw"])
    assert times[0].keys() == times[1].keys()
    for name, total in times[0].items():
        assert times[1][name] == pytest.approx(total, rel=1e-6, abs=1e-6), name


def test_threads_are_lanes(read: Any) -> None:
    """Where the other thread wakes before a loop is over, which is not up to one short loop."""
    assert [0, 1] in read["etx"]["lanes"].values()
