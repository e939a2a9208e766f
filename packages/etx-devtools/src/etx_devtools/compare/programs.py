# SPDX-License-Identifier: BSD-3-Clause
"""`etx compare a.pte --against b.pte`: two files, or one on two runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import etx_runtime
from etx_exir.load_model import load_factory
from etx_runtime.commands.samples import InputOptions, prepare_calls
from etx_schema import EtxError, PteFile, read_pte, serialize_pte
from etx_schema.calls import Place, choose_method, read_calls
from etx_schema.errors import naming
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node

from etx_devtools.compare.against import Pair, output_distance
from etx_devtools.compare.elsewhere import Ran
from etx_devtools.compare.engine import Execution
from etx_devtools.compare.files import split_name
from etx_devtools.compare.here import Here
from etx_devtools.compare.models import Model, flat_call, load_models
from etx_devtools.compare.record import find_method
from etx_devtools.compare.report import Report
from etx_devtools.compare.sides import ExportedSide, FileSide, Side

__all__ = ["compare_exported", "compare_programs", "compare_with_file"]

Name = str | PathLike[str]


def compare_programs(
    file: Name | bytes | PteFile | ExportedProgram,
    other: Name | bytes | PteFile | ExportedProgram,
    calls: Sequence[Sequence[Any]],
    *,
    method: str = "forward",
    source: Execution | None = None,
    other_source: Execution | None = None,
) -> Report:
    """Compare the values of a program with those of another one, of the same model.

    Values are paired by where in the model they come from; `source` and `other_source` say what
    ran the programs, by default this machine. Exported programs are run in eager PyTorch.
    """
    shown = [str(f) if isinstance(f, (str, PathLike)) else "a program" for f in (file, other)]
    report = Report(shown[0], shown[1], other=shown[1])
    pair = Pair(_side(file, method, source), _side(other, method, other_source), method)
    report.calls = [pair.call(flat_call(call)) for call in calls]
    return report


def _side(
    file: Name | bytes | PteFile | ExportedProgram, method: str, source: Execution | None
) -> Side:
    if isinstance(file, ExportedProgram):
        return ExportedSide(file)
    pte = file if isinstance(file, PteFile) else read_pte(file)
    return FileSide(pte, method, source or Here(pte, method))


def compare_with_file(
    file: str,
    other: str,
    inputs: Sequence[str] = (),
    method: str | None = None,
    seed: int | None = None,
    eager: str | None = None,
    ran: Ran | None = None,
    other_ran: Ran | None = None,
) -> Report:
    """Do what `etx compare FILE --against OTHER` does, for `method` or all that both have."""
    with naming(file):
        first = read_pte(file)
    with naming(other):
        second = read_pte(other)
    ran, other_ran = ran or Ran(), other_ran or Ran()
    shown = f"{other} on {other_ran}" if str(other_ran) else other
    report = Report(file, shown, other=shown, random=not inputs and eager is None)
    for name in _methods(first, second, method, bool(inputs)):
        calls = _calls(first, name, inputs, seed, eager)
        sources = (ran.of(first, name, calls), other_ran.of(second, name, calls))
        found = compare_programs(
            first, second, calls, method=name, source=sources[0], other_source=sources[1]
        )
        report.calls += found.calls
    report.where = str(ran)
    return report


def compare_exported(
    file: str, other: str, inputs: Sequence[str] = (), method: str | None = None
) -> Report:
    """Compare an exported program's file with another one, or with a model in eager mode.

    Of a model in eager mode the outputs are what the module itself returns.
    """
    (first,) = load_models(file).values()
    models = load_models(other)
    second = models[choose_method(models, method, other)]
    calls = _arrays(first, inputs) if inputs else [second.call or first.call]
    found = compare_programs(first.program, second.program, calls)
    report = Report(file, other, found.calls, other=other)
    if second.module is not None:
        own = ExportedSide(first.program)
        for call, comparison in zip(calls, report.calls, strict=True):
            both = zip(own.run(call).outputs, second.outputs(call), strict=True)
            comparison.outputs = [output_distance(*pair) for pair in both]
    return report


def _arrays(model: Model, inputs: Sequence[str]) -> list[list[Any]]:
    """Return the calls in files."""
    nodes = ExportedSide(model.program).reference.inputs()
    places = [_place(node) for node in nodes]
    found = read_calls([split_name(text)[1] for text in inputs], places)
    missing = [place.name for call in found for i, place in enumerate(places) if i not in call]
    if missing:
        raise EtxError(f"{', '.join(inputs)}: no array of input {missing[0]!r}")
    return [[call[i] for i in range(len(places))] for call in found]


def _place(node: Node) -> Place:
    value = node.meta.get("val")
    sizes = [size if isinstance(size, int) else None for size in getattr(value, "shape", ())]
    return Place(node.name, tuple(sizes) if isinstance(value, Tensor) else None)


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
        choose_method(sources, method, eager)
        return [flat_call((sources[method].inputs, sources[method].kwargs))]
    given = InputOptions(files=[split_name(text) for text in inputs], seed=seed or 0)
    program = etx_runtime.Runtime.get().load_program(serialize_pte(pte))
    return prepare_calls(program.load_method(method), given)
