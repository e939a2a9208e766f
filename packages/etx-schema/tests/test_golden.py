# SPDX-License-Identifier: BSD-3-Clause
"""Files of released versions stay readable; the current writer still gives these bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from etx_schema import read_pte, serialize_pte, verify
from programs import PROGRAMS

GOLDEN = Path(__file__).parent / "golden" / "v1"


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden(name):
    content = (GOLDEN / f"{name}.pte").read_bytes()
    expected = PROGRAMS[name]()
    assert serialize_pte(expected) == content
    pte = read_pte(content)
    assert verify(pte) == []
    assert serialize_pte(pte) == content or name == "delegated"
    assert [bytes(blob) for blob in pte.constants] == expected.constants
    assert {k: bytes(v.data) for k, v in pte.named_data.items()} == {
        k: v.data for k, v in expected.named_data.items()
    }


def test_every_golden_file_is_tested():
    assert {path.stem for path in GOLDEN.glob("*.pte")} == set(PROGRAMS)
