# SPDX-License-Identifier: BSD-3-Clause
"""Bundled programs go both ways: the same bytes, and the same verdicts on all of them."""

from __future__ import annotations

import json

import pytest
from forked import call

SIDES = ("etx", "executorch")


@pytest.mark.parametrize("order", [SIDES, SIDES[::-1]], ids="-".join)
def test_bundles_cross(order, request, tmp_path):
    printed = call(request.config, "--both", "bundles.py", tmp_path, *order)
    found = json.loads(printed.splitlines()[-1])
    assert len(set(found["digests"].values())) == 1
    assert len(found["verdicts"]) == 4
    assert set(map(tuple, found["verdicts"].values())) == {(True, False, False)}
