# SPDX-License-Identifier: BSD-3-Clause
"""Where a kernel lies: in a file named like its operator, or like its family, in a small folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from etx_kernels_portable._tables import tables
from harness import PLUGIN

NATIVE = Path(__file__).parent.parent / "native"
FILES = 25
"""In one folder."""

WHOLE = {
    "activation": "functions of one tensor and numbers, as networks use them",
    "binary": "functions of two tensors, or of a tensor and a number",
    "compare": "comparisons, and logic on their results",
    "matmul": "products of matrices",
    "prim": "operators on numbers and sizes",
    "reduce": "folds of elements",
    "unary": "functions of one tensor, rows of unary.def",
    "view": "the same elements, in the same order, in another shape",
}
"""Families of operators that share no word with them, and what makes an operator a member."""

KIN = {
    "cat": {"stack"},
    "cdist": {"_pdist_forward"},
    "copy": {"clone", "_to_copy", "_h2d_copy", "_d2h_copy"}
    | {"_to_dim_order_copy", "_clone_dim_order", "_empty_dim_order"},
    "cumsum": {"cumprod"},
    "div": {"remainder", "fmod"},
    "fill": {"full", "full_like", "zeros", "ones", "empty", "scalar_tensor"},
    "permute": {"t_copy", "transpose_copy"},
    "random": {"randn"},
    "recurrent": {"lstm", "gru", "rnn"},
    "slice": {"narrow_copy", "select_copy", "select_scatter"},
    "split": {"unbind_copy"},
    "var": {"std", "std_mean"},
}
"""Operators that are another one's special or general case and lie beside it."""


def families() -> dict[str, list[str]]:
    """Return the kernels of each family, in the order of families.h."""
    names = re.findall(r"^  X\((\w+)\)", (NATIVE / "families.h").read_text(), re.MULTILINE)
    found = [[row.name.decode() for row in table] for table in tables(PLUGIN.library)]
    return dict(zip(names, found, strict=True))


def file_of(family: str) -> Path:
    [path] = NATIVE.glob(f"ops/*/{family}.cpp")
    return path


def words(name: str) -> set[str]:
    """Return what a name is made of, without the kinds of sizes: `pool2d` is `pool`."""
    return {re.sub(r"\d+d$", "", word) for word in name.split("_")} - {"", "copy", "out", "native"}


def belongs(kernel: str, path: Path) -> bool:
    """Say whether one who knows the operator's name finds its file."""
    namespace, name = kernel.split(".")[0].split("::")
    if path.stem in WHOLE or name in KIN.get(path.stem, ()) or name.strip("_") == path.stem:
        return True
    theirs = words(path.stem) | words(path.parent.name)
    return any(
        mine in other or other in mine
        for mine in words(f"{namespace}_{name}")
        for other in theirs
        if min(len(mine), len(other)) > 2
    )


def test_each_kernel_is_where_its_name_says() -> None:
    lost = {
        kernel: str(file_of(family).relative_to(NATIVE))
        for family, kernels in families().items()
        for kernel in kernels
        if not belongs(kernel, file_of(family))
    }
    assert lost == {}


@pytest.mark.parametrize("family", families())
def test_the_table_of_a_family_is_in_its_file(family: str) -> None:
    assert f"ETX_KERNEL_TABLE({family}_kernels" in file_of(family).read_text()


def test_no_exception_is_left_over() -> None:
    found = families()
    for family, kin in KIN.items():
        assert kin <= {kernel.split("::")[1].split(".")[0] for kernel in found[family]}
    assert set(WHOLE) <= set(found)


def test_folders_are_small() -> None:
    sizes = {
        str(folder.relative_to(NATIVE)): sum(path.is_file() for path in folder.iterdir())
        for folder in NATIVE.rglob("*")
        if folder.is_dir()
    }
    assert {name: size for name, size in sizes.items() if size > FILES} == {}


@pytest.mark.parametrize(
    ("kernel", "path", "expected"),
    [
        ("aten::cumsum.out", "reduce/cumsum.cpp", True),
        ("aten::cumsum.out", "reduce/var.cpp", False),
        ("aten::masked_fill.Scalar_out", "elementwise/where.cpp", False),
        ("aten::reflection_pad2d.out", "move/pad.cpp", True),
        ("aten::roll.out", "move/repeat.cpp", False),
        ("aten::view_copy.out", "move/copy.cpp", False),
        ("quantized_decomposed::add.out", "elementwise/pow.cpp", False),
    ],
)
def test_a_lost_kernel_is_noticed(kernel: str, path: str, expected: bool) -> None:
    assert belongs(kernel, NATIVE / "ops" / path) is expected
