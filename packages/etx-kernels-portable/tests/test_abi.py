# SPDX-License-Identifier: BSD-3-Clause
"""What Python reads from ``etx/abi.h`` is what a C compiler reads from it."""

from __future__ import annotations

import ctypes as c
import shutil
import subprocess
from pathlib import Path

import etx_kernels_portable._tables as tables
import pytest
from abi import ABI, header
from harness import PLUGIN, Call


def test_the_compiler_lays_structs_out_alike(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("c++") or shutil.which("clang++")
    assert compiler is not None, "a C compiler is missing"
    expected: list[int] = []
    printed: list[str] = []
    for name, struct in ABI.structs.items():
        expected.append(c.sizeof(struct))
        printed.append(f"sizeof({name})")
        for field, *_ in struct._fields_:
            expected.append(getattr(struct, field).offset)
            printed.append(f"offsetof({name}, {field})")
    body = "".join(f'  printf("%zu\\n", {expression});\n' for expression in printed)
    source = tmp_path / "layout.c"
    source.write_text(f"#include <etx/abi.h>\n#include <stdio.h>\nint main(void) {{\n{body}}}\n")
    program, include = tmp_path / "layout", header().parents[1]
    subprocess.run([compiler, f"-I{include}", source, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert dict(zip(printed, map(int, done.stdout.split()), strict=True)) == dict(
        zip(printed, expected, strict=True)
    )


def test_kernels_get_a_whole_context() -> None:
    """A member that is appended to etx_context and that the harness does not know stays null, as
    `trace` and `ticks` are where nobody watches."""
    context = Call(PLUGIN.kernels["aten::add.out"], 2, True).context()
    missing = [name for name, *_ in context._fields_ if not getattr(context, name)]
    assert missing == ["is_loading", "trace", "ticks"]
    assert context.struct_size == c.sizeof(ABI.structs["etx_context"])


@pytest.mark.parametrize(
    ("mirror", "name"),
    [
        (tables.Kernel, "etx_kernel"),
        (tables.Table, "etx_kernel_table"),
        (tables.Plugin, "etx_plugin"),
    ],
)
def test_the_tables_that_the_package_reads(mirror: type[c.Structure], name: str) -> None:
    struct = ABI.structs[name]
    for field, *_ in mirror._fields_:
        assert getattr(mirror, field).offset == getattr(struct, field).offset, field
        assert getattr(mirror, field).size == getattr(struct, field).size, field
    if name != "etx_plugin":
        assert c.sizeof(mirror) == c.sizeof(struct)
