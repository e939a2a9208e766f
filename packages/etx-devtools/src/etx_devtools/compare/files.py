# SPDX-License-Identifier: BSD-3-Clause
"""A file and the model that it was compiled from, run and compared."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import etx_runtime
from etx_exir.delegation.backend_entry_points import load_backend
from etx_exir.ir.equal_values import INNER
from etx_exir.load_model import load_partitioner
from etx_exir.lower.capture import capture
from etx_exir.lower.decompose import decompose
from etx_runtime.commands.samples import InputOptions, prepare_calls
from etx_schema import EtxError, PteFile, read_pte
from etx_schema.calls import choose_method, method_names
from etx_schema.errors import naming
from torch import nn
from torch.export import ExportedProgram

from etx_devtools.compare.bisect import bisect, compile_part, is_delegate, isolate
from etx_devtools.compare.elsewhere import Ran
from etx_devtools.compare.engine import Execution, Session
from etx_devtools.compare.here import Here
from etx_devtools.compare.inside import compile_tapped
from etx_devtools.compare.layers import Layers
from etx_devtools.compare.metrics import Metric, measuring
from etx_devtools.compare.models import Model, Quantization, flat_call, is_exported, load_models
from etx_devtools.compare.notes import Notes, notes_of
from etx_devtools.compare.record import find_method
from etx_devtools.compare.reduce import write_reduced
from etx_devtools.compare.reference import Reference
from etx_devtools.compare.report import Report
from etx_devtools.compare.threads import enough_threads

__all__ = ["compare", "compare_files", "split_name"]

Name = str | PathLike[str]


def compare(
    file: Name | bytes | PteFile,
    model: ExportedProgram | nn.Module,
    calls: Sequence[Sequence[Any]] | None = None,
    *,
    method: str = "forward",
    name: str = "",
    source: Execution | None = None,
    floating: ExportedProgram | None = None,
    metrics: Mapping[str, Metric] | None = None,
) -> Report:
    """Compare a program with what it was compiled from, instruction by instruction.

    `calls` are the arguments of one call after the other, buffers keeping their values; nested as
    they were exported, or flat. Without them the example inputs of the exported program are used.
    A module is exported with the first call's arguments. `source` says what ran, by default the
    program on this machine; `floating` is the float model that a quantized one was made of.
    `metrics` are functions of two arrays, got and expected, that are told beside the others.
    Errors: EtxError where `model` is not what the file was compiled from, or inputs do not fit.
    """
    pte = file if isinstance(file, PteFile) else read_pte(file)
    if isinstance(model, nn.Module):
        if not calls:
            raise EtxError("a module is exported with the arguments of a call; none was given")
        model = capture(model, tuple(calls[0]))
    reference = Reference(model)
    if calls is None:
        args, kwargs = model.example_inputs or ((), {})
        calls = [flat_call((args, kwargs))]
    shown = str(file) if isinstance(file, (str, PathLike)) else "the program"
    report = Report(shown, name or type(model).__name__)
    notes = notes_of(pte, method)
    report.stripped = not notes.known
    layers = None if floating is None else Layers(reference, floating)
    inner = _inner(model, notes)
    session = Session(pte, method, reference, source or Here(pte, method), inner, layers)
    with measuring(metrics), enough_threads(model):
        for call in calls:
            report.calls.append(session.call(flat_call(call)))
    return report


def _inner(program: ExportedProgram, notes: Notes) -> Reference | None:
    """Return the program decomposed, where notes name parts of operators."""
    if not any(INNER in note.name for note in notes.values.values()):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Reference(decompose(program), noted=True)


def compare_files(
    file: str,
    eager: str,
    inputs: Sequence[str] = (),
    method: str | None = None,
    seed: int | None = None,
    inside: Sequence[str] = (),
    reduced: str | None = None,
    ran: Ran | None = None,
    bisected: str | None = None,
    log: str | None = None,
    floating: str | None = None,
    quantized: Quantization | None = None,
) -> Report:
    """Do what `etx compare` does: `eager` names a factory or a .pt2, `inputs` are [name=]file.

    `inside` names the backends of whose delegates all values are compared; to `reduced` the first
    wrong instruction is written. `ran` says what made the calls, by default this machine.
    In delegates of the backend `bisected` the node at fault is searched; `log` keeps the steps.
    `floating` names the factory of the float model that a quantized one was made of.
    `quantized` says how `eager` was quantized; it is the float model then, unless int8 goes in.
    Without `method` all that both have are compared, or `forward` where inputs, what a device
    recorded or what is written are of one.
    """
    with naming(file):
        pte = read_pte(file)
    models = load_models(eager, quantized)
    if quantized is not None and not quantized.int8_io:
        floating = floating or eager
    if is_exported(eager):
        models = {choose_method(method_names(pte), method, file): models["forward"]}
    job = _Job(
        file,
        eager,
        pte,
        models,
        inputs,
        seed,
        inside,
        reduced,
        ran or Ran(),
        bisected,
        log,
        floating,
    )
    known = [name for name in method_names(pte) if name in models]
    if method is not None or len(known) < 2:
        return job.compare(_method(pte, method, models, eager))
    if job.is_of_one:
        chosen = _method(pte, method, models, eager)
        report = job.compare(chosen)
        report.left_out = [name for name in known if name != chosen]
        return report
    report, *others = [job.compare(name) for name in known]
    for other in others:
        report.calls += other.calls
        report.stripped |= other.stripped
    return report


@dataclass(frozen=True)
class _Job:
    """What `compare_files` was given."""

    file: str
    eager: str
    pte: PteFile
    models: Mapping[str, Model]
    inputs: Sequence[str]
    seed: int | None
    inside: Sequence[str]
    reduced: str | None
    ran: Ran
    bisected: str | None
    log: str | None
    floating: str | None

    @property
    def is_of_one(self) -> bool:
        """Whether what was given is of one method."""
        return bool(self.inputs or self.reduced or self.bisected or str(self.ran))

    def compare(self, chosen: str) -> Report:
        """Compare a method."""
        pte, program, calls = self.pte, self.models[chosen].program, self._calls(chosen)
        if self.inside:
            partitioners = [_partitioner(n) for n in self.inside]
            pte = compile_tapped({chosen: program}, partitioners)
        source = self.ran.of(pte, chosen, calls)
        wide = None
        if self.floating is not None:
            wide = load_models(self.floating)[chosen].program
        report = compare(
            pte, program, calls, method=chosen, name=self.eager, source=source, floating=wide
        )
        report.where, report.again = str(self.ran), bool(self.inside)
        if self.bisected is not None:
            found = _search(report, program, calls, _partitioner(self.bisected), self.log)
            (pte, report), chosen = found, "forward"
            report.model = self.eager
        if self.reduced is not None:
            _reduce(pte, report, chosen, self.reduced)
        report.file, report.random = self.file, self.seed is not None and not self.inputs
        return report

    def _calls(self, chosen: str) -> list[list[Any]]:
        """Return the calls in files, or one with random inputs, or with the example inputs."""
        if not self.inputs and self.seed is None:
            return [self.models[chosen].call]
        given = InputOptions(files=[split_name(t) for t in self.inputs], seed=self.seed or 0)
        program = etx_runtime.Runtime.get().load_program(self.file)
        return prepare_calls(program.load_method(chosen), given)


def _search(
    whole: Report, program: ExportedProgram, calls: Any, partitioner: Any, log: str | None
) -> tuple[PteFile, Report]:
    """Search the node at fault; return its program and what a comparison says of it."""

    def verdict(pte: PteFile) -> Report:
        return compare(pte, program, calls)

    is_wrong = any(c.wrong and is_delegate(c) for call in whole.calls for c in call.checks)
    found = bisect(program, partitioner, verdict, log, is_wrong)
    if not found.name:
        whole.searched = found
        return compile_part(program, partitioner, 0)[0], whole
    pte, report = isolate(found, program, partitioner, verdict)
    report.searched = found
    return pte, report


def _method(pte: PteFile, name: str | None, sources: Mapping[str, Model], eager: str) -> str:
    if name is None:
        names = method_names(pte)
        name = choose_method([n for n in names if n in sources] or names, None)
    find_method(pte, name)
    if name not in sources:
        known = ", ".join(sorted(sources))
        raise EtxError(f"{eager} has no method {name!r} (it has: {known}); --method names another")
    return name


def split_name(text: str) -> tuple[str, str]:
    """Split `[NAME=]FILE`; the name is empty where none is given."""
    name, equals, path = text.partition("=")
    return (name, path) if equals else ("", text)


def _reduce(pte: PteFile, report: Report, method: str, path: str) -> None:
    if report.first is None:
        raise EtxError(f"--reduce {path}: no instruction is wrong, so that there is none to write")
    found = report.calls[report.first[0]].found
    assert found is not None
    plan = pte.program.execution_plan[find_method(pte, method)]
    report.written = [str(item) for item in write_reduced(pte, plan, found, path)]


def _partitioner(name: str) -> Any:
    """Return the partitioner `model.py:Name`, or that of the backend `NAME[:spec=value]`."""
    is_class = ":" in name and "=" not in name
    return load_partitioner(name) if is_class else load_backend(name)
