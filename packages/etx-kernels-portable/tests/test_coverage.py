# SPDX-License-Identifier: BSD-3-Clause
"""Every kernel has a test, whichever tests are chosen to run: nothing here asks what has run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import test_scalars
import torch
from cases import integer, recurrent
from harness import PLUGIN
from integer_calls import INTEGER_CALLS
from intercept import kernel_name, reached, variant_of
from test_ops import CASES

FOLDER = Path(__file__).parent
NAMES = {n for kernel in PLUGIN.kernels for n in (kernel, kernel.split("::")[1])}
FIRST = 2
"""Samples that reach nearly all kernels."""
REFUSALS = {"test_errors.py", "test_bounds.py", "test_abi.py", Path(__file__).name}


def texts(path: Path) -> Iterator[str]:
    """Yield the strings of a file, and what its f-strings give with holes filled from these."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    words = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    yield from words
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else None for p in node.values]
            pattern = "".join(r"([\w.]+)" if p is None else re.escape(str(p)) for p in parts)
            for name in NAMES:
                match = re.fullmatch(pattern, name)
                if match and words.issuperset(match.groups()):
                    yield name


def named(path: Path) -> set[str]:
    """Return the kernels that a test file names, with or without the namespace."""
    found = set(texts(path))
    return {kernel for kernel in PLUGIN.kernels if {kernel, kernel.split("::")[1]} & found}


def called_with_numbers() -> Iterator[str]:
    for op, overload, *_ in test_scalars.CASES:
        variant = variant_of(getattr(getattr(torch.ops.aten, op), overload))
        assert variant is not None, f"no kernel for aten::{op}.{overload}"
        yield kernel_name(variant)


def test_every_op_has_a_case() -> None:
    missing = set(PLUGIN.kernels) - set(called_with_numbers())
    for path in sorted(FOLDER.glob("test_*.py")):
        if path.name not in REFUSALS:
            missing -= named(path)
    dtypes = [(case, dtype) for case in CASES for dtype in case.dtypes[:2]]
    for count in (FIRST, None):
        for case, dtype in dtypes:
            if missing and dtype not in case.xfail:
                missing -= reached(case, dtype, count)
    assert not missing, f"no case reaches {sorted(missing)}"


def test_every_integer_operator_has_a_case() -> None:
    cases = (*integer.CASES, *recurrent.CASES)
    found = set().union(*(reached(case, case.dtypes[0]) for case in cases))
    assert found - {f"etx::{name}.out" for name in recurrent.GATES} == set(INTEGER_CALLS)
