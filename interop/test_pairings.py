# SPDX-License-Identifier: BSD-3-Clause
"""Exporter × runtime {ETX, ExecuTorch 1.5.1} agree with eager on the model set.

ExecuTorch's files on its own runtime do so by hand: `-s interop -- --by-hand`.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import Workshop
from names import ROWS

TOLERANCE = 1e-3
CHECK = """
import json, sys
from etx_schema.cli import main
print(json.dumps([main(words) for words in json.loads(sys.argv[1])]))
"""


def test_agrees_with_eager(
    model: str, exporter: str, runtime: str, workshop: Workshop, request: pytest.FixtureRequest
) -> None:
    row = ROWS[model]
    refused = row.own or (row.refused if exporter == "executorch" else None)
    if refused:
        request.applymarker(pytest.mark.xfail(strict=True, reason=refused))
    agree(workshop.folder / model, exporter, runtime)


def test_own_target_agrees_with_eager(model: str, workshop: Workshop) -> None:
    """The file for the default target, on the runtime it is for."""
    agree(workshop.folder / model, "own", "etx")


def agree(folder: Path, exporter: str, runtime: str) -> None:
    """Compare the outputs of all calls of one file on one runtime with eager's."""
    for stem in (f"{exporter}", f"{exporter}.{runtime}"):
        error = folder / f"{stem}.error"
        assert not error.exists(), error.read_text()
    expected, actual = np.load(folder / "calls.npz"), np.load(folder / f"{exporter}.{runtime}.npz")
    sizes = json.loads((folder / "calls.json").read_text())
    for call, (_, outputs) in enumerate(sizes):
        for i in range(outputs):
            key = f"call{call}_output{i}"
            compare(actual[key], expected[key], key, ROWS[folder.name].classes)


def compare(actual: np.ndarray, expected: np.ndarray, key: str, classes: bool) -> None:
    """max |error| <= 1e-3 · max |eager|, same shape and dtype, and the same arg max for classes."""
    assert actual.shape == expected.shape, key
    assert actual.dtype == expected.dtype, key
    worst = float(np.abs(actual - expected).max() / np.abs(expected).max())
    assert worst <= TOLERANCE, f"{key}: off by {worst:.2g} of eager's largest value"
    if classes:
        np.testing.assert_array_equal(actual.argmax(-1), expected.argmax(-1), key)


def test_check_agrees(model: str, workshop: Workshop) -> None:
    """What ETX wrote has no problem where it runs, nor on a target it was written for."""
    installed, own, both = (), ("--target", "etx"), ("--target", "executorch")
    files = {"own": (installed, own), "etx": (installed, own, both)}
    if ROWS[model].own:
        del files["etx"]
    calls = [
        ["check", str(workshop.folder / model / f"{file}.pte"), *target]
        for file, targets in files.items()
        for target in targets
    ]
    command = [workshop.config.getoption("--device"), "-c", CHECK, json.dumps(calls)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [0] * len(calls), done.stdout + done.stderr


def test_folding_lets_no_file_grow(model: str, workshop: Workshop) -> None:
    assert json.loads((workshop.folder / model / "growth.json").read_text()) <= 0


def test_eager_is_worth_comparing(model: str, workshop: Workshop) -> None:
    arrays = np.load(workshop.folder / model / "calls.npz")
    first, second = arrays["call0_output0"], arrays["call1_output0"]
    for output in (first, second):
        assert output.std() > 1e-2
    if first.shape == second.shape:
        assert np.abs(first - second).max() > 1e-3 * np.abs(first).max()


def test_pitch_is_right(workshop: Workshop) -> None:
    arrays = np.load(workshop.folder / "crepe" / "etx.etx.npz")
    for call, hertz in enumerate((440.0, 220.0)):
        cents = 1997.3794084376191 + 20 * int(arrays[f"call{call}_output0"].argmax())
        assert 10 * 2 ** (cents / 1200) == pytest.approx(hertz, rel=0.015)


def test_tied_embedding_is_stored_once(workshop: Workshop) -> None:
    vocabulary, width, hidden, layers = 4096, 192, 512, 4
    block = 4 * width**2 + 3 * width * hidden + 2 * width
    floats = vocabulary * width + layers * block + width
    size = (workshop.folder / "decoder" / "etx.pte").stat().st_size
    assert 4 * floats < size < 4 * floats + 150_000
