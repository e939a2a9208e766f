# SPDX-License-Identifier: BSD-3-Clause
"""The lowerings to TOSA: importing this fills the table."""

from etx_backend_arm.nodes import functions, pool  # isort: skip  # their forms are tried first
from etx_backend_arm.nodes import (
    arithmetic,
    casts,
    clamp,
    conv,
    indices,
    linear,
    lstm,
    matmul,
    moves,
    norm,
    reduce,
    resize,
    softmax,
    transposed,
)
from etx_backend_arm.nodes.table import (
    TABLE,
    Lowering,
    Profile,
    arguments,
    form_of,
    lowers,
    why_not,
)

__all__ = [
    "TABLE",
    "Lowering",
    "Profile",
    "arguments",
    "arithmetic",
    "casts",
    "clamp",
    "conv",
    "form_of",
    "functions",
    "indices",
    "linear",
    "lowers",
    "lstm",
    "matmul",
    "moves",
    "norm",
    "pool",
    "reduce",
    "resize",
    "softmax",
    "transposed",
    "why_not",
]
