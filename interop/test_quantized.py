# SPDX-License-Identifier: BSD-3-Clause
"""Quantized models: q/dq files on both runtimes, and integer operators on ours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import EXPORTERS, Workshop


def outputs(workshop: Workshop, model: str, stem: str) -> list[np.ndarray]:
    """Return the outputs of all calls: of a file on a runtime, or as `reference.py` stored them."""
    error = workshop.folder / model / f"{stem}.error"
    assert not error.exists(), error.read_text()
    arrays = np.load(workshop.folder / model / f"{stem}.npz")
    return [arrays[key] for key in sorted(arrays.files) if "output" in key]


def sqnr(exact: list[np.ndarray], other: list[np.ndarray]) -> float:
    """Return the ratio of signal to noise in decibels."""
    noise = sum(float(np.square(a - b).sum()) for a, b in zip(exact, other, strict=True))
    signal = sum(float(np.square(a).sum()) for a in exact)
    return 10 * math.log10(signal / noise) if noise else math.inf


REFUSED = {("decoder_torchao", "executorch"): "torchao::dequantize_affine"}
"""ExecuTorch has kernels of torchao's operators within delegates only."""


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_a_file_for_both_agrees_on_both(quantized: str, exporter: str, integers: Workshop) -> None:
    if (quantized, exporter) in REFUSED:
        error = (integers.folder / quantized / f"{exporter}.error").read_text()
        assert "Missing out variants" in error
        assert REFUSED[quantized, exporter] in error
        return
    ours = outputs(integers, quantized, f"{exporter}.etx")
    theirs = outputs(integers, quantized, f"{exporter}.executorch")
    expected = outputs(integers, quantized, "calls")
    # A step of one activation, which products of another order cause, is some of the next layers.
    assert sqnr(expected, ours) > 12
    assert sqnr(expected, theirs) > 12
    assert sqnr(theirs, ours) > 12


def test_integers_are_as_near_to_float_as_the_quantized_model(
    quantized: str, integers: Workshop
) -> None:
    """Over many calls: of one, a step of an activation makes a decibel more or less."""
    exact = outputs(integers, f"{quantized}/many", "float/calls")
    model = outputs(integers, f"{quantized}/many", "calls")
    ours = outputs(integers, f"{quantized}/many", "own.etx")
    assert sqnr(exact, ours) > sqnr(exact, model) - 0.75
