# SPDX-License-Identifier: BSD-3-Clause
"""The printed graph says what is computed, and how its values are quantized."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from etx_backend_xnnpack import describe_blob
from etx_schema import NamedBlob, cli, read_pte
from etx_schema.inspect.describe_delegate import PRINTERS

DATA = Path(__file__).parent / "data"


def lines(name: str, index: int = 0) -> list[str]:
    pte = read_pte(DATA / f"{name}.pte")
    return describe_blob(pte.delegates[index], pte.named_data)["lines"]


def test_float_network():
    found = lines("mobilenet")
    assert "v0: fp32[1, 3, 32, 32] input 0" in found
    assert re.search(r"v2: fp32\[8, 3, 3, 3\] constant [0-9a-f]{12}…, 864 bytes", found[2])
    assert (
        "v3 = Conv2d(v1, v2, v4, padding 1/1/1/1, kernel 3x3, subsampling 2x2, channels 3->8) "
        "clamped to [0.0, 6.0]"
    ) in found
    assert "v29 = FullyConnected(v26, v27, v28)" in found


def test_quantized_network():
    found = lines("mobilenet_int8")
    assert "v1: qint8[1, 3, 32, 32] scale 0.00391902, zero_point -128" in found
    assert found[3].endswith("216 bytes channel_dim 0, scales 8")
    assert "v36 = Convert(v35)" in found


def test_dynamic_quantization_and_absent_bias():
    assert "v1: qdint8[2, 32] dynamic True, nonbatch_dims 1" in lines("dynamic_linear")
    found = lines("int4_groups")
    assert "v3 = FullyConnected(v1, v2)" in found
    assert found[2].endswith("512 bytes channel_dim 0, scales 32, group_size 32")


def test_other_nodes():
    found = "\n".join(lines("ops", 1))
    for text in (
        "Concatenate2(v2, v3, axis 1)",
        "LeakyRelu(v4, negative_slope 0.2)",
        "Slice(v8, offsets [0, 1, 0, 0], sizes [1, 2, 6, 8])",
        "ResizeBilinear2d(v6, new 16x16)",
        "Clamp(v22) clamped to [-1.0, 2.0]",
    ):
        assert text in found


def test_missing_constants_are_said():
    pte = read_pte(DATA / "dynamic_linear.pte")
    found = describe_blob(pte.delegates[0], {})["lines"]
    assert found[2].endswith("in a .ptd channel_dim 0, scales 16")
    named = {name: NamedBlob(b"123") for name in pte.named_data}
    assert "3 bytes" in describe_blob(pte.delegates[0], named)["lines"][2]


@pytest.mark.parametrize("path", sorted(DATA.glob("*.pte")), ids=lambda path: path.stem)
def test_document_is_json(path):
    pte = read_pte(path)
    for blob in pte.delegates:
        document = describe_blob(blob, pte.named_data)
        assert json.loads(json.dumps(document)) == document
        assert len(document["lines"]) == len(document["values"]) + len(document["nodes"])


def test_show_prints_the_graph(capsys, monkeypatch):
    from importlib.metadata import EntryPoint

    entry = EntryPoint("XnnpackBackend", "etx_backend_xnnpack.describe:describe_blob", PRINTERS)
    monkeypatch.setattr(
        "etx_schema.entry_points.entries", lambda group: [entry] * (group == entry.group)
    )
    assert cli.main(["show", str(DATA / "dynamic_linear.pte")]) == 0
    out = capsys.readouterr().out
    assert "  delegate 0: XnnpackBackend, 1,040 bytes\n    v0: fp32[2, 32] input 0\n" in out
    assert "    v4 = FullyConnected(v1, v2, v3)\n" in out
