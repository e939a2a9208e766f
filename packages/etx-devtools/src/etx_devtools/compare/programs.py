# SPDX-License-Identifier: BSD-3-Clause
"""`etx compare a.pte --against b.pte`: two files, or one on two runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import etx_runtime
from etx_exir.load_model import load_factory
from etx_runtime.commands.samples import InputOptions, prepare_calls
from etx_schema import EtxError, PteFile, read_pte, serialize_pte

from etx_devtools.compare.against import Pair
from etx_devtools.compare.elsewhere import Dump, on_executorch
from etx_devtools.compare.engine import Execution
from etx_devtools.compare.files import flat_call, split_name
from etx_devtools.compare.here import Here
from etx_devtools.compare.record import find_method
from etx_devtools.compare.report import Report

__all__ = ["compare_programs", "compare_with_file"]

Name = str | PathLike[str]


def compare_programs(
    file: Name | bytes | PteFile,
    other: Name | bytes | PteFile,
    calls: Sequence[Sequence[Any]],
    *,
    method: str = "forward",
    source: Execution | None = None,
) -> Report:
    """Compare the values of a program with those of another one, of the same model.

    Values are paired by where in the model they come from; `source` says what ran the first.
    """
    first, second = (f if isinstance(f, PteFile) else read_pte(f) for f in (file, other))
    shown = [str(f) if isinstance(f, (str, PathLike)) else "a program" for f in (file, other)]
    report = Report(shown[0], shown[1], other=shown[1])
    ran = source or Here(first, method)
    pair = Pair((first, ran), (second, Here(second, method)), method)
    report.calls = [pair.call(flat_call(call)) for call in calls]
    return report


def compare_with_file(
    file: str,
    other: str,
    inputs: Sequence[str] = (),
    method: str | None = None,
    seed: int | None = None,
    eager: str | None = None,
    etdump: str | None = None,
    executorch: str | None = None,
) -> Report:
    """Do what `etx compare FILE --against OTHER` does, for `method` or all that both have."""
    first, second = read_pte(file), read_pte(other)
    report = Report(file, other, other=other, random=not inputs and eager is None)
    for name in _methods(first, second, method, bool(inputs)):
        calls = _calls(first, name, inputs, seed, eager)
        ran: Execution | None = None
        if etdump is not None:
            ran = Dump(first, name, Path(etdump), Path(etdump).with_suffix(".bin"))
        elif executorch is not None:
            ran = on_executorch(executorch, first, name, calls)
        found = compare_programs(first, second, calls, method=name, source=ran)
        report.calls += found.calls
    report.where = etdump or ("" if executorch is None else "ExecuTorch")
    return report


def _methods(first: PteFile, second: PteFile, chosen: str | None, given: bool) -> list[str]:
    names = [[plan.name or "" for plan in pte.program.execution_plan] for pte in (first, second)]
    if chosen is not None:
        for pte in (first, second):
            find_method(pte, chosen)
        return [chosen]
    both = [name for name in names[0] if name in names[1]]
    if not both:
        shown = " and ".join(", ".join(sorted(n)) for n in names)
        raise EtxError(f"the programs have no method in common (they have: {shown})")
    if given and len(both) > 1:
        raise EtxError(
            f"--inputs are those of one method, and both have {', '.join(both)}: name it with "
            "--method"
        )
    return both


def _calls(
    pte: PteFile, method: str, inputs: Sequence[str], seed: int | None, eager: str | None
) -> list[list[Any]]:
    if eager is not None and not inputs and seed is None:
        sources = load_factory(eager)
        if method not in sources:
            raise EtxError(
                f"{eager} has no method {method!r} (it has: {', '.join(sorted(sources))})"
            )
        return [flat_call((sources[method].inputs, sources[method].kwargs))]
    given = InputOptions(files=[split_name(text) for text in inputs], seed=seed or 0)
    program = etx_runtime.Runtime.get().load_program(serialize_pte(pte))
    return prepare_calls(program.load_method(method), given)
