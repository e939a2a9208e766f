# SPDX-License-Identifier: BSD-3-Clause
"""Where instructions come from (named data `etx/debug`)."""

from __future__ import annotations

from etx_runtime._native import Program

KEY = "etx/debug"


def describe_origin(program: Program, method: str, instruction: int) -> str:
    """Return module path and source line of an instruction, or an empty string."""
    data = program.named_data(KEY)
    if data is None or instruction < 0:
        return ""
    from json import loads

    try:
        row = loads(data)[method]["instructions"][instruction]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return ""
    if not isinstance(row, dict):
        return ""
    parts = [str(row[key]) for key in ("module", "source") if row.get(key)]
    return ", ".join(parts)
