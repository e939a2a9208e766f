# SPDX-License-Identifier: BSD-3-Clause
"""`etx compile`: from a Python file to a `.pte` file."""

from __future__ import annotations

import argparse
import io
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from etx_schema import EtxError
from etx_schema.files import write_atomically
from etx_schema.outputs import OutputFile, OutputFolder, OutputOrDash, refuse_clashes

from etx_exir.console import CHOICES, Console
from etx_exir.ir.targets import DEFAULT, PRECISIONS
from etx_exir.progress import reporting
from etx_exir.quantization import add_options, check_options, quantize_sources, write_report

__all__ = ["register"]

BESIDE = object()
"""Given without a name: beside the file that is written."""

TARGET_HELP = (
    f"what the file must run on (default: {DEFAULT}, all that ETX can do; executorch: what "
    "ExecuTorch can do, too)"
)
PRECISION_HELP = (
    "in what weights are stored: float32, or bf16, half as large, whose largest error on the "
    "example inputs is printed, with what stays float32 (default: float32)"
)
STAGES_HELP = (
    "write what each pass changed, and what --explain says, for etx report (default: "
    "FILE.stages.json)"
)


def register(subparsers: Any) -> None:
    """Add the command to `etx`."""
    parser = subparsers.add_parser(
        "compile",
        help="make a .pte file from a PyTorch model",
        description="Export, lower and write the model that FACTORY returns: a module with "
        "`example_inputs` (and `example_kwargs`, `dynamic_shapes`); (module, inputs[, "
        "dynamic_shapes]), where inputs is a tuple, or a dict of keyword inputs; (module, inputs, "
        "keyword_inputs, dynamic_shapes); or, for several methods, a dict of these by name.",
        epilog="example: etx compile model.py:Net -o net.pte --dump-passes",
    )
    parser.add_argument("source", metavar="MODULE:FACTORY", help="model.py:Net or package.mod:make")
    parser.add_argument(
        "-o",
        "--output",
        type=OutputFile,
        metavar="FILE",
        required=True,
        help="the .pte to write",
    )
    parser.add_argument("--target", metavar="NAME|FILE", default=DEFAULT, help=TARGET_HELP)
    parser.add_argument(
        "--partitioner",
        metavar="MODULE:CLASS",
        action="append",
        default=[],
        help="delegate what this partitioner picks; may be given several times",
    )
    parser.add_argument(
        "--backend",
        metavar="NAME[:spec=value,...]",
        action="append",
        default=[],
        help="delegate to an installed backend, which the target is taken to have; may be given "
        "several times; `etx backends` lists them",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="say why each operator stayed out of a delegate, why passes left some as they are, "
        "and which expressions of constants are computed at run time since the file would grow",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--dump-passes",
        type=OutputFolder,
        metavar="DIR",
        nargs="?",
        const=BESIDE,
        help="write the program after each pass that changed it (default: FILE.passes)",
    )
    parser.add_argument(
        "--stages", type=OutputFile, metavar="FILE", nargs="?", const=BESIDE, help=STAGES_HELP
    )
    parser.add_argument(
        "--weights",
        type=OutputFile,
        metavar="FILE.ptd",
        help="write the weights to this file, to be loaded beside the program",
    )
    for what in ("segment", "constant", "delegate"):
        parser.add_argument(
            f"--{what}-alignment",
            metavar="BYTES",
            type=int,
            help=f"where each {what} may begin in the file: multiples of this power of two",
        )
    _add_memories(parser)
    parser.add_argument(
        "--precision", choices=PRECISIONS, default=PRECISIONS[0], help=PRECISION_HELP
    )
    add_options(parser)
    parser.add_argument(
        "--progress",
        choices=CHOICES,
        default="auto",
        help="on standard error: on a terminal after two seconds (auto), a line a step, or never",
    )
    parser.set_defaults(run=run)


def _add_memories(parser: argparse.ArgumentParser) -> None:
    memories = parser.add_mutually_exclusive_group()
    memories.add_argument(
        "--memory-map",
        metavar="FILE",
        help="a .json file of the device's memories: banks with sizes, and pins",
    )
    memories.add_argument(
        "--memory",
        metavar="NAME:SIZE,...",
        help="the device's memories, the fastest first, such as dtcm:64K,sram:256K",
    )
    parser.add_argument(
        "--memory-report",
        type=OutputOrDash,
        metavar="FILE",
        help="draw the memory plan (.svg), or write it as .txt or .json; - prints it",
    )


def run(options: argparse.Namespace) -> int:
    """Run `etx compile`."""
    output = Path(options.output)
    check_options(options)
    if options.stages is BESIDE:
        options.stages = OutputFile(f"{output}.stages.json")
    if options.dump_passes is BESIDE:
        options.dump_passes = OutputFolder(f"{output}.passes")
    refuse_clashes(vars(options).values())
    if options.memory_report not in (None, "-"):
        from etx_schema.inspect.memory_report import check_output

        check_output(options.memory_report)
    from etx_exir.delegation.backend_entry_points import load_backend
    from etx_exir.load_model import load_factory, load_partitioner
    from etx_exir.plan import MemoryPlanningPass, TargetMemoryMap

    banks = None
    if options.memory is not None:
        banks = TargetMemoryMap.parse(options.memory)
    elif options.memory_map is not None:
        banks = TargetMemoryMap.load(options.memory_map)
    planning = MemoryPlanningPass(memory_map=banks)
    sources = load_factory(options.source)
    storing = _storing(options)
    chosen = [load_backend(name) for name in options.backend]
    partitioners = [*chosen, *(load_partitioner(name) for name in options.partitioner)]
    from etx_exir.config import ExecutorchBackendConfig
    from etx_exir.lower.capture import capture
    from etx_exir.program import to_edge_transform_and_lower

    dump = None if options.dump_passes is None else _Dump(Path(options.dump_passes))
    log: Any = None
    with Console(options.progress) as console, reporting(console):
        quantized = None
        if options.quantize is not None:
            sources, quantized = quantize_sources(sources, options, console)
        with _quiet():
            programs = {name: capture(*source) for name, source in sources.items()}
        if options.stages is not None:
            from etx_exir.stages import Stages

            log = Stages(programs)
        edge = to_edge_transform_and_lower(
            programs, partitioner=partitioners, observer=_together(dump, log)
        )
        target = _target(options, edge)
        with _warnings_as_lines():
            result = edge.to_executorch(
                ExecutorchBackendConfig(
                    memory_planning_pass=planning,
                    target=target,
                    precision=options.precision,
                    **storing,
                )
            )
        narrow = None
        if options.precision != PRECISIONS[0]:
            from etx_exir.precision import Precision

            narrow = Precision.of(programs, result)
        if options.weights is not None:
            result.write_tensor_data_to_file(Path(options.weights).parent)
        result.save(output)
    explained = _explain(edge, result) if options.explain or log is not None else ("", {})
    if log is not None:
        document = log.document(result.buffer, explained[1])
        write_atomically(options.stages, [json.dumps(document, indent=1).encode()])
    explained = explained if options.explain else ("", {})
    _report(options, output, result, explained, quantized, narrow)
    if options.memory_report is not None:
        _report_memory(result, output.name, options.memory_report)
    return 0


def _storing(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options that say how and where bytes are stored."""
    chosen: dict[str, Any] = {
        "segment_alignment": options.segment_alignment,
        "constant_tensor_alignment": options.constant_alignment,
        "delegate_alignment": options.delegate_alignment,
    }
    storing = {name: value for name, value in chosen.items() if value is not None}
    if options.weights is not None:
        weights = Path(options.weights)
        if weights.suffix != ".ptd":
            raise EtxError(f"--weights {weights}: expected a name that ends in .ptd")
        storing["external_constants"] = lambda _: weights.stem
    return storing


def _target(options: argparse.Namespace, edge: Any) -> Any:
    """Return the target, with the backends that were asked for by name."""
    from dataclasses import replace

    from etx_exir.delegation.info import get_delegation_info
    from etx_exir.target.check import load_target

    if not options.backend:
        return options.target
    target = load_target(options.target)
    graphs = [edge.exported_program(name).graph_module for name in sorted(edge.methods)]
    used = {backend for g in graphs for backend in get_delegation_info(g).delegates_by_backend}
    return replace(target, backends=tuple(sorted({*target.backends, *used})))


def _report(
    options: argparse.Namespace,
    output: Path,
    result: Any,
    explained: tuple[str, dict[str, Any]],
    quantized: Any,
    narrow: Any = None,
) -> None:
    from etx_schema.targets.peer import PEER, compare

    from etx_exir.target.check import load_target

    plans = result.executorch_program.execution_plan
    facts: dict[str, Any] = {
        "file": str(output),
        "bytes": output.stat().st_size if output.is_file() else None,
        "instructions": sum(len(plan.chains[0].instructions) for plan in plans),
        "arena": sum(sum(plan.non_const_buffer_sizes[1:]) for plan in plans),
    }
    peer = compare(result.pte_file, load_target(PEER))
    if peer is not None:
        facts["executorch"] = peer
    summaries = _summaries(result.pte_file)
    if summaries:
        facts["delegates"] = summaries
    if quantized is not None:
        facts["quantization"] = quantized.document()
        if options.quantize_report not in (None, "-" if options.json else None):
            write_report(quantized, options.quantize_report)
    if narrow is not None:
        facts["precision"] = narrow.document()
    text, document = explained
    if options.json:
        print(json.dumps({**facts, "methods": document} if document else facts, indent=1))
        return
    if text:
        print(f"{text}\n")
    if facts["bytes"] is None:
        print(f"{output}: written", file=sys.stderr)
    else:
        form = "{file}: {bytes:,} bytes, {instructions} instructions, arena {arena:,} bytes"
        print(form.format(**facts))
    for summary in summaries:
        print(summary)
    if quantized is not None and options.quantize_report != "-":
        print(quantized.summary())
    if narrow is not None:
        print(narrow.summary())
    if peer is not None:
        print(f"it {peer['text']}")


def _summaries(pte: Any) -> list[str]:
    """Return what packages that know the backends of delegates sum up of each."""
    from etx_schema.inspect.describe_delegate import describe_delegate

    delegates = [each for plan in pte.program.execution_plan for each in plan.delegates]
    graphs = [describe_delegate(pte, each).get("graph", {}) for each in delegates]
    return [graph["summary"] for graph in graphs if "summary" in graph]


def _report_memory(result: Any, name: str, path: str) -> None:
    from etx_schema.inspect.memory import memory_of
    from etx_schema.inspect.memory_report import lines, write_report

    methods = memory_of(result.pte_file)
    if path == "-":
        print("\n".join(lines(methods, name, result.memory_banks)))
    else:
        write_report(path, methods, name, result.memory_banks)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print what a target file should say as a line of standard error."""
    from etx_exir.target.check import TargetWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for item in caught:
        if issubclass(item.category, TargetWarning):
            print(f"etx: {item.message}", file=sys.stderr)
        else:
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back what torch prints about a module it refuses: the error says it."""
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        logger.setLevel(level)


def _together(*observers: Any) -> Any:
    """Return an observer that calls those that are not None."""
    chosen = [each for each in observers if each is not None]

    def observe(name: str, program: Any, changed: bool) -> None:
        for each in chosen:
            each(name, program, changed)

    return observe if chosen else None


class _Dump:
    """Write the program after each step that changed it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EtxError(f"cannot make the folder {folder}: {error.strerror}") from error

    def __call__(self, name: str, program: Any, changed: bool) -> None:
        if changed:
            text = program.graph_module.print_readable(print_output=False)
            (self.folder / f"{self.count:02d}_{name}.txt").write_text(text)
            self.count += 1


def _explain(edge: Any, result: Any) -> tuple[str, dict[str, Any]]:
    """Return what is delegated, why the rest is not, and what passes left: text and document."""
    from dataclasses import asdict

    from etx_exir.delegation.explain import (
        at_run_time,
        costs,
        declined,
        explanation,
        near_misses,
        outside,
    )
    from etx_exir.delegation.info import get_delegation_info

    texts: list[str] = []
    document: dict[str, Any] = {}
    for name in sorted(edge.methods):
        program, written = edge.exported_program(name), result.exported_program(name)
        info = get_delegation_info(program.graph_module)
        rows = outside(program, name)
        parts = [info.get_summary(), info.get_operator_delegation_table()]
        texts += [*parts, explanation(rows)] if rows else parts
        left = declined(written, name)
        texts += [near_misses(left)] if left else []
        kept = at_run_time(written, name)
        texts += [costs(kept)] if kept else []
        document[name] = {
            **asdict(info),
            "outside": [asdict(row) for row in rows],
            "declined": [asdict(row) for row in left],
            "at_run_time": [asdict(row) for row in kept],
        }
    return "\n\n".join(texts), document
