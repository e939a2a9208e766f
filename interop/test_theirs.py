# SPDX-License-Identifier: BSD-3-Clause
"""What ExecuTorch lowers to XNNPACK, in float and quantized, runs on ETX as on its own runtime."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import RUNTIMES, Workshop
from test_xnnpack import results

APART = {
    "mobilenet_v3_small@float": 1e-4,
    "mobilenet_v2@static-int8": 1e-6,
    "decoder@dynamic-int8": 2e-2,
    "decoder@int4": 2e-2,
}
"""How far both runtimes may be apart, as part of the largest value: rows that are quantized at run
time are rounded after sums in another order."""


@pytest.mark.parametrize("theirs_lowered", APART)
def test_runtimes_agree(theirs_lowered: str, theirs: Workshop) -> None:
    ours, own = (results(theirs_lowered, runtime, theirs) for runtime in RUNTIMES)
    for (key, found, _), (_, expected, _) in zip(ours, own, strict=True):
        worst = np.abs(found - expected).max() / np.abs(expected).max()
        assert worst <= APART[theirs_lowered], f"{key}: off by {worst:.2g}"
        np.testing.assert_array_equal(found.argmax(-1), expected.argmax(-1), key)


@pytest.mark.parametrize("theirs_lowered", [name for name in APART if "static" not in name])
def test_agrees_with_eager(theirs_lowered: str, theirs: Workshop) -> None:
    for key, found, expected in results(theirs_lowered, "etx", theirs):
        worst = np.abs(found - expected).max() / np.abs(expected).max()
        limit = 1e-3 if theirs_lowered.endswith("float") else 5e-2
        assert worst <= limit, f"{key}: off by {worst:.2g} of eager's largest value"
