# SPDX-License-Identifier: BSD-3-Clause
"""The operators that programs may call on these kernels, as a target file.

``python -m etx_kernels_aten.operators aten.json`` writes those of torch itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

SCALARS = (
    "add sub mul floordiv truediv mod eq gt lt ge le sym_max sym_min neg ceil round trunc "
    "sym_float sym_int sym_not sym_ite"
)
PRIMS = (
    *(f"executorch_prim::{name}.Scalar" for name in SCALARS.split()),
    "executorch_prim::floordiv.int",
    "executorch_prim::mod.int",
    "executorch_prim::et_view.default",
    "executorch_prim::et_copy_index.tensor",
    "etx::view_at.default",
    "aten::sym_size.int",
    "aten::sym_numel",
    "aten::_local_scalar_dense",
    "dim_order_ops::_to_dim_order_copy.out",
    "dim_order_ops::_clone_dim_order.out",
    "dim_order_ops::_empty_dim_order.out",
)
"""Rows of native/prims.cpp: what torch's dispatcher lacks."""


def operators() -> Iterator[str]:
    """Yield the names of torch's registry now, and the out variants that follow from them."""
    names = set(torch._C._dispatch_get_all_op_names())
    yield from PRIMS
    for name in names:
        yield name
        space, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        out = f"{space}::{base}.{overload}_out" if overload else f"{name}.out"
        if space != "aten" and out not in names:
            yield out


def document(version: str) -> dict[str, Any]:
    """Return the target."""
    return {
        "name": "aten",
        "description": f"etx-runtime with etx-kernels-aten on torch {torch.__version__}",
        "version": version,
        "runtime": {"min_version": "0.1.0"},
        "limits": {"max_rank": 16},
        "operators": {name: {} for name in sorted(set(operators()))},
    }


def write(path: Path, version: str) -> None:
    """Write the target to `path`, all at once."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(document(version), indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2])
