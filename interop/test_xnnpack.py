# SPDX-License-Identifier: BSD-3-Clause
"""What etx-backend-xnnpack writes computes on both runtimes what eager computes.

Every case of the package's tests, and models of the set: how many delegates they become.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import RUNTIMES, Workshop
from names import ROWS
from test_pairings import compare

OUTSIDE = {
    "resnet18": [],
    "mobilenet_v2": [],
    "mobilenet_v3_small": [],
    "efficientnet_b0": [],
    "deit_tiny": [],
    "vit_b_16": [],
    "swin_t": [],
    "densenet121": [],
    "unet": [],
    "lstm": [],
    "gru": [],
    "crepe": [],
    "minilm": ["aten.embedding.default", "aten.slice_copy.Tensor", "aten.sym_size.int"],
    "decoder": [
        *("aten.arange.start_step", "aten.embedding.default", "aten.le.Tensor"),
        *("aten.view_copy.default", "aten.where.self"),
        *["aten.index.Tensor", "aten.scalar_tensor.default"] * 3,
        *["aten.index_put.default"] * 9,
    ],
}
"""Models that are one delegate, and the operators that no delegate has."""


QUANTIZED = {
    "int8-resnet18": [],
    "int8-mobilenet_v2": [],
    "int8-efficientnet_b0": [],
    "dynamic-deit_tiny": [],
    "dynamic-minilm": OUTSIDE["minilm"],
}
DECIBELS = 2.0


@pytest.mark.parametrize("delegated", [*OUTSIDE, *QUANTIZED])
def test_model_is_one_delegate(delegated: str, delegates: Workshop) -> None:
    count, outside = json.loads((delegates.folder / delegated / "left.json").read_text())
    expected = {**OUTSIDE, **QUANTIZED}[delegated]
    assert (count, sorted(outside)) == (1, sorted(expected))


@pytest.mark.parametrize("delegated", QUANTIZED)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_quantized_model_is_as_close_to_float_as_in_eager(
    delegated: str, runtime: str, delegates: Workshop
) -> None:
    """Ties are rounded otherwise here and there, and dynamic ranges are those of rows."""
    floats = np.load(delegates.folder / delegated / "calls.npz")
    for key, actual, expected in results(delegated, runtime, delegates):
        exact = floats[key.replace("output", "float")]
        noise, own = (float(np.square(y - exact).sum()) for y in (actual, expected))
        assert 10 * np.log10(noise / own) <= DECIBELS, key


@pytest.mark.parametrize("delegated", OUTSIDE)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_model_agrees_with_eager(delegated: str, runtime: str, delegates: Workshop) -> None:
    for key, actual, expected in results(delegated, runtime, delegates):
        compare(actual, expected, key, delegated not in ROWS or ROWS[delegated].classes)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_case_agrees_with_eager(lowering: str, runtime: str, delegates: Workshop) -> None:
    tolerance = json.loads((delegates.folder / lowering / "tol.json").read_text())[runtime]
    for key, actual, expected in results(lowering, runtime, delegates):
        assert actual.shape == expected.shape, key
        assert actual.dtype == expected.dtype, key
        exact = expected.astype(np.float64)
        worst = np.abs(actual - exact).max() / max(np.abs(exact).max(), 1e-30)
        assert worst <= tolerance, f"{key}: off by {worst:.2g} of eager's largest value"


def results(
    name: str, runtime: str, delegates: Workshop
) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Return the outputs of all calls, ours and eager's."""
    folder = delegates.folder / name
    for stem in ("xnnpack", f"xnnpack.{runtime}"):
        error = folder / f"{stem}.error"
        assert not error.exists(), error.read_text()
    expected, actual = np.load(folder / "calls.npz"), np.load(folder / f"xnnpack.{runtime}.npz")
    keys = [key for key in expected.files if "_output" in key]
    assert keys
    return [(key, actual[key], expected[key]) for key in keys]
