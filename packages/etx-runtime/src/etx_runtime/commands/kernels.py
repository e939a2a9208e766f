# SPDX-License-Identifier: BSD-3-Clause
"""`etx show --kernels`: which rows of kernel tables the instructions of a file take here."""

from __future__ import annotations


def kernel_rows(path: str) -> dict[str, list[str]]:
    """Return what runs each instruction, by method. Errors: those of loading."""
    from etx_runtime import Runtime

    program = Runtime.get().load_program(path)
    return {name: program.load_method(name).kernel_rows() for name in sorted(program.method_names)}
