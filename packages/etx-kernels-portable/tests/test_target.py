# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import json
from pathlib import Path

import etx_kernels_portable
import pytest
from etx_kernels_portable import target
from etx_schema.targets.takes import misfit_of
from harness import PLUGIN
from quantized_calls import KERNELS, row
from rows import Kinds, boxes, inside

NAMESPACES = ("quantized_decomposed::", "etx::")


def test_the_target_lists_the_kernels() -> None:
    assert target.main([]) == 0
    document = json.loads(Path(etx_kernels_portable.target_path()).read_text(encoding="utf-8"))
    assert set(document["operators"]) == set(PLUGIN.kernels)


def test_a_stale_target_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stale = tmp_path / "etx.json"
    stale.write_text('{"operators": {"aten::other.out": {}}}')
    assert target.main(["--target", str(stale)]) == 1
    assert "does not list the kernels" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("taken", "refused", "expected"),
    [
        ([("a", "b"), ("c", "d")], [("a", "d"), ("c", "b")], 2),
        ([("a", "a"), ("b", "b"), ("c", "c")], [("a", "b"), ("b", "a"), ("c", "a")], 1),
        ([("a", "x"), ("b", "x"), ("b", "y")], [("a", "y")], 2),
        ([("a", "x"), ("b", "y")], [], 1),
    ],
)
def test_rows_are_exact(taken: list[Kinds], refused: list[Kinds], expected: int) -> None:
    found = boxes(set(taken), {*taken, *refused})
    assert len(found) == expected
    assert all(any(inside(row, box) for box in found) for row in taken)
    assert not any(inside(row, box) for box in found for row in refused)


def test_kernels_have_one_name_each() -> None:
    names = [name for name, _ in target.kernels(etx_kernels_portable.library_path())]
    assert len(names) == len(set(names))


def test_a_listed_operator_has_dtypes() -> None:
    """`etx check` compares the dtype of what an operator returns with the list."""
    document = json.loads(Path(etx_kernels_portable.target_path()).read_text(encoding="utf-8"))
    operators = document["operators"]
    assert [name for name, row in operators.items() if row.get("dtypes") == []] == []


@pytest.mark.filterwarnings("ignore:.*complex")
def test_rows_of_quantized_kernels_state_their_arguments() -> None:
    operators = json.loads(Path(etx_kernels_portable.target_path()).read_text(encoding="utf-8"))
    rows = {k: v for k, v in operators["operators"].items() if k.startswith(NAMESPACES)}
    assert rows.keys() - {"etx::view_at.default"} == set(KERNELS)
    for name in ("quantize_per_tensor.out", "dequantize_per_token.out", "add.out"):
        assert rows[f"quantized_decomposed::{name}"] == row(f"quantized_decomposed::{name}")
    for name in ("etx::quantized_linear.out", "etx::dynamic_linear_int4.out"):
        assert rows[name] == row(name)
    kinds = [["float32"], [], [], [], [], [], ["int64"]]
    found = misfit_of(rows["quantized_decomposed::quantize_per_tensor.out"], kinds, "int64")
    assert found is not None
    assert (found.argument, found.given) == ("out", "int64")
