# SPDX-License-Identifier: BSD-3-Clause
"""Models with trained weights, quantized: their answers are those of float, on both runtimes,
by kernels and by XNNPACK."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import Workshop

CELLS = (
    ("etx", "etx"),
    ("shared", "etx"),
    ("shared", "executorch"),
    ("xnnpack", "etx"),
    ("xnnpack", "executorch"),
)
CORRELATION = {"minilm-int8-dynamic": 0.99, "minilm-int4": 0.97}
BYTES = {"minilm-int8-dynamic": 24_000_000, "minilm-int4": 25_000_000, "crepe-int8": 550_000}
CENTS = 10


def results(case: str, file: str, runtime: str, workshop: Workshop) -> tuple[list, list]:
    """Return what float and the quantized file answer to each call."""
    folder = workshop.folder / case
    error = folder / f"{file}.{runtime}.error"
    assert not error.exists(), error.read_text()
    expected, actual = np.load(folder / "calls.npz"), np.load(folder / f"{file}.{runtime}.npz")
    keys = [f"call{i}_output0" for i in range(len(actual.files))]
    return [expected[key] for key in keys], [actual[key] for key in keys]


def similarities(embeddings: list[np.ndarray]) -> np.ndarray:
    """Return the cosine of each pair: the first sentences, then the second."""
    rows = np.concatenate(embeddings)
    half = len(rows) // 2
    return (rows[:half] * rows[half:]).sum(-1)


def ranks(values: np.ndarray) -> np.ndarray:
    return values.argsort().argsort().astype(float)


@pytest.mark.parametrize(("file", "runtime"), CELLS)
@pytest.mark.parametrize("recipe", CORRELATION)
def test_sentences_are_ranked_as_by_float(
    recipe: str, file: str, runtime: str, trained_weights: Workshop
) -> None:
    expected, actual = map(similarities, results(recipe, file, runtime, trained_weights))
    assert len(expected) == 50
    correlation = np.corrcoef(ranks(expected), ranks(actual))[0, 1]
    assert correlation >= CORRELATION[recipe]


def cents(activation: np.ndarray) -> float:
    """Return the pitch: the mean of the bins around the strongest, weighted by what they hold."""
    (bins,) = activation
    first = max(int(bins.argmax()) - 4, 0)
    near = bins[first : first + 9]
    places = 1997.3794084376191 + 20 * np.arange(first, first + len(near))
    return float((near * places).sum() / near.sum())


@pytest.mark.parametrize(("file", "runtime"), CELLS)
@pytest.mark.parametrize("recipe", ["crepe-int8"])
def test_pitch_is_that_of_float(
    recipe: str, file: str, runtime: str, trained_weights: Workshop
) -> None:
    expected, actual = results(recipe, file, runtime, trained_weights)
    assert len(expected) == 24
    apart = [abs(cents(x) - cents(y)) for x, y in zip(expected, actual, strict=True)]
    assert max(apart) <= CENTS


@pytest.mark.parametrize("file", ["etx", "shared"])
@pytest.mark.parametrize("recipe", BYTES)
def test_files_are_small(recipe: str, file: str, trained_weights: Workshop) -> None:
    assert (trained_weights.folder / recipe / f"{file}.pte").stat().st_size <= BYTES[recipe]
    report = json.loads((trained_weights.folder / recipe / "report.json").read_text())
    assert all(not layer["is_float"] for layer in report["layers"])


@pytest.mark.parametrize("recipe", BYTES)
def test_xnnpack_takes_all_layers_in_one_delegate(recipe: str, trained_weights: Workshop) -> None:
    count, outside = json.loads((trained_weights.folder / recipe / "delegated.json").read_text())
    assert count == 1
    assert not any("linear" in operator or "conv" in operator for operator in outside)
