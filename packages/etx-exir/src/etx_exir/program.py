# SPDX-License-Identifier: BSD-3-Clause
"""The programs of a file on their way: Edge dialect first, then the file itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from etx_schema import Program, PteFile, serialize_pte, write_ptd, write_pte
from etx_schema.inspect.describe import describe_pte
from etx_schema.inspect.show import lines
from torch import nn
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from etx_exir.config import EdgeCompileConfig, ExecutorchBackendConfig
from etx_exir.delegation.backend import Partitioner
from etx_exir.delegation.partition import delegate
from etx_exir.errors import ConfigError, VerificationError
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.delegate_call import CALL_DELEGATE, LoweredBackendModule
from etx_exir.lower.capture import capture
from etx_exir.lower.copy_program import apply_passes, copy_program
from etx_exir.lower.lower import Observer, fit, in_steps, lower_all, lower_kept
from etx_exir.lower.verify import Dialect, breaches
from etx_exir.progress import Progress, naming, report, reporting
from etx_exir.target.check import load_target

if TYPE_CHECKING:
    from etx_exir.emit import Emitted
    from etx_exir.etrecord import ETRecord
    from etx_exir.plan import PlanReport

__all__ = [
    "EdgeProgramManager",
    "ExecutorchProgramManager",
    "compile",
    "to_edge",
    "to_edge_transform_and_lower",
]

NO_ETRECORD = (
    "no ETRecord was kept: call to_edge or to_edge_transform_and_lower with generate_etrecord=True"
)
Programs = ExportedProgram | Mapping[str, ExportedProgram]
Delegator = Callable[
    [Mapping[str, ExportedProgram], Mapping[str, Partitioner | None]], dict[str, ExportedProgram]
]


class ExecutorchProgramManager:
    """A finished file in memory, with the Edge programs it was made of."""

    def __init__(
        self,
        emitted: Emitted,
        programs: dict[str, ExportedProgram],
        config: ExecutorchBackendConfig,
        constant_methods: Mapping[str, Any],
    ) -> None:
        self._pte = emitted.pte
        self._emitted = emitted
        self._programs = programs
        self._config = config
        self._constant_methods = dict(constant_methods)
        self._record: ETRecord | None = None

    @property
    def methods(self) -> set[str]:
        """The names of the methods that compute something."""
        return set(self._programs)

    @property
    def config_methods(self) -> set[str]:
        """The names of the constant methods."""
        return set(self._constant_methods)

    @property
    def executorch_program(self) -> Program:
        """The tables of the file."""
        return self._pte.program

    @property
    def pte_file(self) -> PteFile:
        """The file's tables and blobs before they are laid out as bytes."""
        return self._pte

    @property
    def memory_reports(self) -> dict[str, PlanReport]:
        """What the memory plan of each method achieves."""
        return self._emitted.reports

    @property
    def debug_handle_map(self) -> dict[str, dict[int, int | list[int]]]:
        """Debug handles by method and instruction; a list for the call of a delegate."""
        return {name: origins.handles() for name, origins in self._emitted.origins.items()}

    @property
    def delegate_map(self) -> dict[str, dict[int, dict[str, Any]]]:
        """Backend, and debug handles of the backend's own ids, by method and instruction."""
        return {name: origins.delegates() for name, origins in self._emitted.origins.items()}

    @property
    def instruction_id_to_num_outs_map(self) -> dict[str, dict[int, int]]:
        """How many results each instruction has, by method and instruction."""
        plans = {plan.name: plan for plan in self._pte.program.execution_plan}
        return {name: o.results(plans[name]) for name, o in self._emitted.origins.items()}

    @property
    def memory_banks(self) -> dict[tuple[str, int], tuple[str, int | None]]:
        """The names and capacities of arenas, by method and memory id."""
        return {
            (method, arena.memory_id): (arena.bank, arena.capacity)
            for method, report in self.memory_reports.items()
            for arena in report.arenas
        }

    def save_memory_report(self, path: str | Path) -> None:
        """Draw the memory plan (`.svg`), or write it as `.txt` or `.json`."""
        from etx_schema.inspect.memory import memory_of
        from etx_schema.inspect.memory_report import check_output, write_report

        check_output(str(path))
        write_report(path, memory_of(self._pte), Path(path).stem, self.memory_banks)

    def exported_program(self, method_name: str = "forward") -> ExportedProgram:
        """Return the Edge program of `method_name`."""
        return _named(self._programs, method_name)

    @cached_property
    def buffer(self) -> bytes:
        """The bytes of the file."""
        return serialize_pte(self._pte, **self._alignments())

    def save(self, path: str | Path) -> None:
        """Write the file; `path` holds either all of it or what it had before."""
        report("write")
        write_pte(self._pte, path, **self._alignments())

    def dump_executorch_program(self, verbose: bool = False, out: TextIO | None = None) -> None:
        """Print the file as `etx show` does; `verbose` adds where instructions come from."""
        document = describe_pte(memoryview(self.buffer))
        print(*lines("program", document, debug=verbose), sep="\n", file=out)

    def get_etrecord(self) -> ETRecord:
        """Return what `generate_etrecord=True` kept, with the maps of this file."""
        if self._record is None:
            raise ConfigError(NO_ETRECORD)
        record = self._record.copy()
        record.add_executorch_program(self)
        return record

    def write_to_file(self, open_file: BinaryIO) -> None:
        """Write the bytes of the file to `open_file`."""
        open_file.write(self.buffer)

    def write_tensor_data_to_file(self, outdir: str | Path) -> None:
        """Write the weights that are stored outside, `<tag>.ptd` for each tag, to `outdir`."""
        for tag, ptd in self._emitted.external.items():
            write_ptd(ptd, Path(outdir) / f"{tag}.ptd")

    def _alignments(self) -> dict[str, int]:
        constant = self._config.constant_tensor_alignment
        return {
            "segment_alignment": self._config.segment_alignment,
            **({} if constant is None else {"constant_alignment": constant}),
        }


class EdgeProgramManager:
    """Programs in the Edge dialect, by method name; the steps return new managers."""

    def __init__(
        self,
        edge_programs: Programs,
        constant_methods: Mapping[str, Any] | None = None,
        compile_config: EdgeCompileConfig | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._programs = _by_name(edge_programs)
        self._constant_methods = dict(constant_methods or {})
        self._config = compile_config or EdgeCompileConfig()
        self._observer = observer
        self._record: ETRecord | None = None

    @property
    def methods(self) -> set[str]:
        """The names of the methods that compute something."""
        return set(self._programs)

    @property
    def config_methods(self) -> set[str]:
        """The names of the constant methods."""
        return set(self._constant_methods)

    def exported_program(self, method_name: str = "forward") -> ExportedProgram:
        """Return the Edge program of `method_name`."""
        return _named(self._programs, method_name)

    def transform(self, passes: Sequence[Any] | Mapping[str, Sequence[Any]]) -> EdgeProgramManager:
        """Apply user passes, the same to all methods or a list a method."""
        _check_names(passes, self._programs, "passes")
        return self._derive(
            {
                name: apply_passes(program, _for_method(passes, name) or ())
                for name, program in self._programs.items()
            }
        )

    def to_backend(
        self, partitioner: Partitioner | Sequence[Partitioner] | Mapping[str, Partitioner]
    ) -> EdgeProgramManager:
        """Delegate what `partitioner` picks, the same for all methods or one a method.

        A list of partitioners is applied one after the other.
        """
        if isinstance(partitioner, Sequence):
            manager = self
            for item in partitioner:
                manager = manager.to_backend(item)
            return manager
        _check_names(partitioner, self._programs, "a partitioner")
        chosen = {name: _for_method(partitioner, name) for name in self._programs}
        programs = {n: in_steps(p) if chosen[n] else p for n, p in self._programs.items()}
        return self._derive(delegate(programs, chosen))

    def to_executorch(
        self, config: ExecutorchBackendConfig | None = None, *, progress: Progress | None = None
    ) -> ExecutorchProgramManager:
        """Choose out variants, plan memory, emit, and check the result against the target."""
        from etx_exir.emit import emit_all

        config = config or ExecutorchBackendConfig()
        target = None if config.target is None else load_target(config.target)
        programs = dict(self._programs)
        if target is not None:
            kept = self._config.preserve_ops
            for name, program in programs.items():
                with naming(name):
                    programs[name] = fit(program, target, kept, self._observer, config.precision)
        else:
            programs = {name: in_steps(program) for name, program in programs.items()}
        if config.passes:
            programs = {n: apply_passes(p, config.passes) for n, p in programs.items()}
        with reporting(progress):
            report("plan memory and emit")
            emitted = emit_all(programs, config, self._constant_methods, target)
        done = ExecutorchProgramManager(emitted, programs, config, self._constant_methods)
        done._record = self._record
        return done

    def _derive(self, programs: dict[str, ExportedProgram]) -> EdgeProgramManager:
        result = EdgeProgramManager(programs, self._constant_methods, self._config, self._observer)
        result._record = self._record
        return result


def to_edge(
    programs: Programs,
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    generate_etrecord: bool = False,
    *,
    observer: Observer | None = None,
    progress: Progress | None = None,
) -> EdgeProgramManager:
    """Lower exported programs, one or several by method name, to the Edge dialect.

    With `generate_etrecord` they are kept for `get_etrecord`, as they are before and after.
    """
    config = compile_config or EdgeCompileConfig()
    named = dict(sorted(_by_name(programs).items()))
    with reporting(progress):
        kept = dict.fromkeys(named, config.preserve_ops)
        edge = lower_all(named, kept, observer, alone=named)
    _verify(edge, config)
    result = EdgeProgramManager(edge, constant_methods, config, observer)
    result._record = _kept(programs, edge) if generate_etrecord else None
    return result


def to_edge_transform_and_lower(
    programs: Programs,
    transform_passes: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
    partitioner: Sequence[Partitioner] | Mapping[str, Sequence[Partitioner]] | None = None,
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    generate_etrecord: bool = False,
    *,
    observer: Observer | None = None,
    progress: Progress | None = None,
    delegator: Delegator = delegate,
) -> EdgeProgramManager:
    """Lower to Edge with the operators kept whole that a partitioner asks for; then delegate.

    Kept operators that no backend took are decomposed after all. `delegator` takes programs and
    partitioners by method name, and returns the programs with their delegates.
    """
    config = compile_config or EdgeCompileConfig()
    records: list[ETRecord] = []

    def delegate_and_keep(
        edge: Mapping[str, ExportedProgram], chosen: Mapping[str, Partitioner | None]
    ) -> dict[str, ExportedProgram]:
        if not records:
            records.append(_kept(programs, edge))
        return delegator(edge, chosen)

    with reporting(progress):
        chosen = delegate_and_keep if generate_etrecord else delegator
        edge = _lower_and_delegate(
            programs, transform_passes, partitioner, config, observer, chosen
        )
    _verify(edge, config)
    result = EdgeProgramManager(edge, constant_methods, config, observer)
    if generate_etrecord:
        result._record = records[0] if records else _kept(programs, edge)
    return result


def compile(
    model: nn.Module | ExportedProgram,
    example_inputs: tuple[Any, ...] = (),
    *,
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    path: str | Path | None = None,
    partitioner: Sequence[Partitioner] | None = None,
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    config: ExecutorchBackendConfig | None = None,
    observer: Observer | None = None,
    progress: Progress | None = None,
) -> ExecutorchProgramManager:
    """Export `model` in evaluation mode, lower it, and write it to `path` if one is given.

    `progress` is called as each step begins; `etx_exir.Console` shows it on a terminal.
    """
    with reporting(progress):
        program = capture(model, example_inputs, example_kwargs, dynamic_shapes)
        edge = to_edge_transform_and_lower(
            program,
            partitioner=partitioner,
            constant_methods=constant_methods,
            compile_config=compile_config,
            observer=observer,
        )
        result = edge.to_executorch(config)
        if path is not None:
            result.save(path)
    return result


def _lower_and_delegate(
    programs: Programs,
    transform_passes: Any,
    partitioner: Any,
    config: EdgeCompileConfig,
    observer: Observer | None,
    delegator: Delegator,
) -> dict[str, ExportedProgram]:
    named = _by_name(programs)
    _check_names(transform_passes, named, "passes")
    _check_names(partitioner, named, "partitioners")
    plans: dict[str, _Lowering] = {}
    for name, program in sorted(named.items()):
        chosen = _for_method(partitioner, name) or ()
        chosen = (chosen,) if isinstance(chosen, Partitioner) else tuple(chosen)
        plans[name] = _Lowering.begin(program, chosen)
    lowered = lower_all(
        {name: plan.program for name, plan in plans.items()},
        {name: (*config.preserve_ops, *plan.preserved) for name, plan in plans.items()},
        observer,
        alone={name for name, plan in plans.items() if not plan.partitioners},
    )
    for name, plan in plans.items():
        with naming(name):
            plan.program = plan.narrow(lowered[name], observer)
        passes = _for_method(transform_passes, name) or ()
        if passes:
            plan.program = apply_passes(plan.program, passes)
    edge = {name: plan.program for name, plan in plans.items()}
    steps = max((len(plan.partitioners) for plan in plans.values()), default=0)
    for step in range(steps):
        report("delegate", step, steps)
        before = edge
        edge = delegator(edge, {name: plan.partitioner(step) for name, plan in plans.items()})
        for name in plans:
            if observer is not None:
                more = _delegates(edge[name]) > _delegates(before[name])
                with naming(name):
                    observer("delegate", edge[name], more)
    for name, plan in plans.items():
        with naming(name):
            lower_kept(edge[name], plan.preserved - set(config.preserve_ops), observer=observer)
    return edge


def _delegates(program: ExportedProgram) -> int:
    graphs = (module.graph for module in graph_modules(program.graph_module))
    return sum(len(g.find_nodes(op="call_function", target=CALL_DELEGATE)) for g in graphs)


def _finish(program: ExportedProgram, config: ExecutorchBackendConfig) -> ExecutorchProgramManager:
    return to_edge(program).to_executorch(config)


LoweredBackendModule.finish = _finish


def _kept(programs: Programs, edge: Mapping[str, ExportedProgram]) -> ETRecord:
    from etx_exir.etrecord import ETRecord

    record = ETRecord()
    record.add_exported_program(programs)
    record.keep_edge({name: copy_program(program) for name, program in edge.items()})
    return record


def _verify(programs: Mapping[str, ExportedProgram], config: EdgeCompileConfig) -> None:
    if config._check_ir_validity:
        allowed = (*config.preserve_ops, *config._core_aten_ops_exception_list)
        found = [breaches(program, Dialect.EDGE, allowed)[0] for program in programs.values()]
        if any(found):
            raise VerificationError("Edge", [finding for each in found for finding in each])


Filters = list[tuple[frozenset[OpOverload], Callable[[Node], bool] | None]]


@dataclass
class _Lowering:
    """A method on its way: what its partitioners want kept whole, and its program."""

    program: ExportedProgram
    partitioners: tuple[Partitioner, ...]
    preserved: set[OpOverload]
    filters: Filters

    @classmethod
    def begin(cls, program: ExportedProgram, partitioners: tuple[Partitioner, ...]) -> _Lowering:
        """Ask the partitioners what they want whole."""
        preserved: list[OpOverload] = []
        filters: Filters = []
        for item in partitioners:
            program = item.transform_for_pre_decomposition(program)
            ops, accepts = item.ops_to_not_decompose(program)
            preserved += ops
            filters.append((frozenset(ops), accepts))
        return cls(program, partitioners, set(preserved), filters)

    def narrow(self, edge: ExportedProgram, observer: Observer | None) -> ExportedProgram:
        """Decompose in `edge` the kept operators that no partitioner's filter accepts."""
        if any(accepts is not None for _, accepts in self.filters):
            lower_kept(
                edge, self.preserved, lambda node: _is_preserved(node, self.filters), observer
            )
        return edge

    def partitioner(self, step: int) -> Partitioner | None:
        """Return the partitioner whose turn it is, None when all had theirs."""
        return self.partitioners[step] if step < len(self.partitioners) else None


def _is_preserved(node: Node, filters: Filters) -> bool:
    return any(
        node.target in ops and (accepts is None or accepts(node)) for ops, accepts in filters
    )


def _by_name(programs: Programs) -> dict[str, ExportedProgram]:
    named = dict(programs) if isinstance(programs, Mapping) else {"forward": programs}
    for name, program in named.items():
        if not isinstance(program, ExportedProgram):
            raise ConfigError(
                f"method {name!r}: expected an ExportedProgram, got {type(program).__name__}; "
                "call torch.export.export(model, example_inputs) first"
            )
    return named


def _for_method(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, Mapping) else given


def _check_names(given: Any, programs: Mapping[str, ExportedProgram], what: str) -> None:
    """Refuse a mapping by method that names one there is not."""
    unknown = [name for name in given if name not in programs] if isinstance(given, Mapping) else []
    if unknown:
        raise ConfigError(
            f"{what} by method: no method {', '.join(map(repr, unknown))}; "
            f"methods: {', '.join(sorted(programs))}"
        )


def _named(programs: Mapping[str, ExportedProgram], name: str) -> ExportedProgram:
    if name not in programs:
        raise ConfigError(f"no method {name!r}; methods: {', '.join(sorted(programs))}")
    return programs[name]
