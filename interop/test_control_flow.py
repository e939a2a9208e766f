# SPDX-License-Identifier: BSD-3-Clause
"""Branches, loops and state on both runtimes: fixed programs, and random ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import RUNTIMES, SEEDS, Workshop
from names import REFUSED_FLOWS, RIGHT_SEEDS

Outputs = dict[str, np.ndarray]


def outputs(folder: Path, stem: str) -> Outputs:
    """Return what one runtime computed with one file; fail with what it said instead."""
    for name in (stem.split(".")[0], stem):
        error = folder / f"{name}.error"
        assert not error.exists(), error.read_text()
    with np.load(folder / f"{stem}.npz") as arrays:
        return dict(arrays)


def expected(folder: Path) -> Outputs:
    """Return what eager mode computed."""
    sizes = json.loads((folder / "calls.json").read_text())
    names = [f"call{call}_output{i}" for call, (_, n) in enumerate(sizes) for i in range(n)]
    with np.load(folder / "calls.npz") as arrays:
        return {name: arrays[name] for name in names}


def compare(actual: Outputs, reference: Outputs) -> None:
    assert actual.keys() == reference.keys()
    for name, array in reference.items():
        assert actual[name].dtype == array.dtype, name
        np.testing.assert_allclose(actual[name], array, rtol=1e-3, atol=1e-4, err_msg=name)
        assert actual[name].shape == array.shape, name


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_agrees_with_eager(
    flow: str, exporter: str, runtime: str, flows: Workshop, request: pytest.FixtureRequest
) -> None:
    if exporter == "executorch" and flow in REFUSED_FLOWS:
        request.applymarker(pytest.mark.xfail(strict=True, reason=REFUSED_FLOWS[flow]))
    folder = flows.folder / flow
    compare(outputs(folder, f"{exporter}.{runtime}"), expected(folder))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_random_program_agrees_with_eager(seed: int, runtime: str, flows: Workshop) -> None:
    folder = flows.folder / f"random{seed}"
    compare(outputs(folder, f"etx.{runtime}"), expected(folder))


def test_random_file_of_executorch_runs_as_there_or_better(seed: int, flows: Workshop) -> None:
    """Ours gives what eager gives, or what ExecuTorch gives with its file: values or an error."""
    folder = flows.folder / f"random{seed}"
    if not (folder / "executorch.pte").exists():
        assert (folder / "executorch.error").read_text()
        return
    ours, theirs = (result(folder, f"executorch.{runtime}") for runtime in RUNTIMES)
    if ours is None:
        assert theirs is None, (folder / "executorch.etx.error").read_text()
    elif theirs is None or agree(theirs, expected(folder)):
        compare(ours, expected(folder))
    else:
        assert agree(ours, theirs) or agree(ours, expected(folder))


def result(folder: Path, stem: str) -> Outputs | None:
    """Return what one runtime computed with a file, None if it ended with an error."""
    return None if (folder / f"{stem}.error").exists() else outputs(folder, stem)


def agree(actual: Outputs, reference: Outputs) -> bool:
    try:
        compare(actual, reference)
    except AssertionError:
        return False
    return True


def test_random_program_agrees_in_all_four_pairings_where_listed(
    seed: int, flows: Workshop
) -> None:
    stem = "executorch.executorch"
    folder = flows.folder / f"random{seed}"
    right = (folder / f"{stem}.npz").exists() and agree(outputs(folder, stem), expected(folder))
    if seed < SEEDS:
        assert right == (seed in RIGHT_SEEDS)
    if right:
        compare(outputs(folder, "executorch.etx"), expected(folder))
