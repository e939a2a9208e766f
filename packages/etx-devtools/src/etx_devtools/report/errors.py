# SPDX-License-Identifier: BSD-3-Clause
"""The error of each instruction against eager mode, as `etx compare` finds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from etx_schema import EtxError

if TYPE_CHECKING:
    from etx_devtools.compare.models import Quantization

__all__ = ["Errors", "errors_of"]

Errors = dict[str, list[list[float]]]
"""By method, rows of instruction, error made there, error that arrived, what rounding explains."""


def errors_of(
    path: str,
    eager: str,
    inputs: Sequence[str] = (),
    method: str | None = None,
    quantized: Quantization | None = None,
) -> Errors:
    """Return the largest absolute errors of each instruction over all calls and results.

    What was not compared has no row. Needs etx-runtime and etx-exir.
    """
    try:
        from etx_devtools.compare.files import compare_files
    except ImportError as error:
        raise EtxError(
            f"--eager needs etx-exir, etx-runtime and etx-kernels-portable ({error})"
        ) from error
    found: dict[str, dict[int, list[float]]] = {}
    report = compare_files(path, eager, inputs, method, quantized=quantized)
    for call in report.calls:
        for check in call.checks:
            if check.made is None and check.arrived is None:
                continue
            rows = found.setdefault(call.method, {})
            row = rows.setdefault(check.instruction, [0.0, 0.0, 0.0])
            distances = [check.made, check.arrived]
            sizes = [0.0 if distance is None else distance.max_abs for distance in distances]
            for place, size in enumerate([*sizes, check.allowed]):
                row[place] = max(row[place], size)
    return {
        name: [[index, *row] for index, row in sorted(rows.items())] for name, rows in found.items()
    }
