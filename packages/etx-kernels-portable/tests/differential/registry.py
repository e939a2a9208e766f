# SPDX-License-Identifier: BSD-3-Clause
"""Which function draws the arguments of which kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from integer_calls import INTEGER_CALLS

from differential.values import Draw

Drawing = Callable[[Draw], list[Any]]
DRAWINGS: dict[str, Drawing] = {}
REFERENCES: dict[str, Callable[..., Any]] = {}
"""What eager computes where it is not an overload of the kernel's own name."""

UNDRAWN = {
    "aten::empty.out": "elements are whatever the memory holds",
    "dim_order_ops::_empty_dim_order.out": "elements are whatever the memory holds",
    "aten::rand.out": "random",
    "aten::randn.out": "random",
    "aten::native_dropout.out": "random",
    **dict.fromkeys(
        (
            *(f"quantized_decomposed::embedding_{n}.out" for n in ("byte", "4bit", "2bit")),
            *(f"quantized_decomposed::embedding_{n}.dtype_out" for n in ("byte", "4bit", "2bit")),
            *(f"quantized_decomposed::{n}.out" for n in ("add", "mixed_mm", "mixed_linear")),
        ),
        "torch has none; tests/test_quantized.py compares with the equation",
    ),
    **dict.fromkeys(
        INTEGER_CALLS, "tests/test_integer.py compares with exact sums, at each level of processors"
    ),
    "etx::attention.out": "torch has none; cases/attention.py compares with the definition",
    "etx::bmm_nt.out": "torch has none; tests/test_products.py compares with bmm",
    "etx::polynomial.out": "torch has none; tests/test_series.py compares with the sum",
    "etx::max_pool2d.out": "torch has none; tests/test_math.py compares with the one with indices",
    **dict.fromkeys(
        (f"etx::narrow_{n}.out" for n in ("linear", "conv")),
        "torch has none; cases/narrow.py compares with the definition",
    ),
    **dict.fromkeys(
        (f"etx::{w}{n}.out" for w in ("", "weight_only_") for n in ("lstm", "gru", "rnn")),
        "torch has none; cases/recurrent.py compares with the definition",
    ),
    **dict.fromkeys(
        ("torchvision::nms.out", "torchvision::roi_align.out"),
        "torch has none; cases/vision.py compares with the definition",
    ),
    "executorch_prim::et_view.default": "returns a view, not a result; tests/test_prim.py",
    "etx::view_at.default": "returns a view, not a result; tests/test_prim.py",
    "executorch_prim::et_copy_index.tensor": "has no counterpart; tests/test_prim.py",
}


def draws(*kernels: str) -> Callable[[Drawing], Drawing]:
    """Register a function for the arguments of these kernels."""

    def register(drawing: Drawing) -> Drawing:
        DRAWINGS.update(dict.fromkeys(kernels, drawing))
        return drawing

    return register
