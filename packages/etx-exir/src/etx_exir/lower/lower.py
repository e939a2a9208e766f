# SPDX-License-Identifier: BSD-3-Clause
"""From an exported program to the Edge dialect: decompose, then the passes in their order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping

from etx_schema import Target
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.debug_handles import number_nodes
from etx_exir.ir.mutable_state import mark_shared
from etx_exir.ir.ops import COPY_OF
from etx_exir.ir.out_variants import out_variant
from etx_exir.ir.recurrent import STEPS
from etx_exir.ir.recurrent_nets import LAYERS, is_whole
from etx_exir.ir.targets import default_operators
from etx_exir.lower.cast_arguments import CastArguments
from etx_exir.lower.copy_program import copy_program
from etx_exir.lower.decompose import decompose, decomposition_table, whole_operators
from etx_exir.lower.decompose_kept import DecomposeKept
from etx_exir.passes import PIPELINE, Pass
from etx_exir.passes.base import recompile
from etx_exir.passes.fit import fitting
from etx_exir.passes.fuse import whole
from etx_exir.passes.integer import integer
from etx_exir.passes.narrow import narrow
from etx_exir.progress import naming, report

__all__ = ["Observer", "fit", "in_steps", "lower", "lower_all", "lower_kept", "run_passes"]

PEER = "executorch"
Observer = Callable[[str, ExportedProgram, bool], None]
"""Called after each step with its name, the program and whether the step changed it."""


def run_passes(
    program: ExportedProgram, passes: Iterable[Pass], observer: Observer | None = None
) -> bool:
    """Run `passes` on `program` in place; return whether any changed it."""
    changed = False
    steps = list(passes)
    for done, item in enumerate(steps):
        report(item.name, done, len(steps))
        did = item.change(program)
        changed |= did
        if observer is not None:
            observer(item.name, program, did)
    if changed:
        recompile(program)
    return changed


def lower(
    program: ExportedProgram,
    preserved: Iterable[OpOverload] = (),
    observer: Observer | None = None,
) -> ExportedProgram:
    """Return `program` in the Edge dialect; the given program stays as it is."""
    (edge,) = lower_all({"": program}, {"": preserved}, observer).values()
    return edge


def lower_all(
    programs: Mapping[str, ExportedProgram],
    preserved: Mapping[str, Iterable[OpOverload]],
    observer: Observer | None = None,
    alone: Collection[str] = (),
) -> dict[str, ExportedProgram]:
    """Return the methods of one file in the Edge dialect, each with its operators kept whole.

    No backend takes a part of those in `alone`: their recurrent layers are one operator each.
    """
    lowered = {}
    for name, program in programs.items():
        with naming(name):
            report("decompose")
            kept = frozenset(preserved[name])
            layers = LAYERS.keys() - kept if name in alone else frozenset()
            lowered[name] = decompose(program, kept | layers)
            _by_layers(lowered[name], layers)
    mark_shared(lowered.values())
    for name, edge in lowered.items():
        number_nodes(edge)
        if observer is not None:
            with naming(name):
                observer("decompose", edge, True)
    changed = set[str]()
    for done, item in enumerate(PIPELINE):
        chosen = [name for name in lowered if not item.lowers & frozenset(preserved[name])]
        for name in chosen:
            with naming(name):
                report(item.name, done, len(PIPELINE))
        together = item.change_all([lowered[name] for name in chosen])
        for name, did in zip(chosen, together, strict=True):
            changed |= {name} if did else set()
            if observer is not None:
                with naming(name):
                    observer(item.name, lowered[name], did)
    for name in changed:
        recompile(lowered[name])
    return lowered


def _by_layers(program: ExportedProgram, ops: Container[OpOverload]) -> None:
    """Write the recurrent nets among `ops` as layers, or as steps where kernels do not fit."""
    graphs = graph_modules(program.graph_module)
    found = {node.target for graph in graphs for node in graph.graph.nodes if node.target in ops}
    if found:
        table = decomposition_table()
        run_passes(
            program,
            (DecomposeKept(found, table, is_whole), DecomposeKept(found, {**table, **LAYERS})),
        )


def in_steps(program: ExportedProgram) -> ExportedProgram:
    """Return `program` with its recurrent layers as operators of torch, step after step."""
    graphs = graph_modules(program.graph_module)
    used = {node.target for graph in graphs for node in graph.graph.nodes} & STEPS.keys()
    if not used:
        return program
    stepwise = copy_program(program)
    variants = {variant.key for op in used if (variant := out_variant(op)) is not None}
    lower_kept(stepwise, used, kernels=default_operators() - variants)
    return stepwise


def lower_kept(
    program: ExportedProgram,
    ops: Iterable[OpOverload],
    keep: Callable[[Node], bool] | None = None,
    observer: Observer | None = None,
    kernels: Container[str] | None = None,
) -> None:
    """Decompose in place the calls of `ops` that were kept whole, except those `keep` names.

    `kernels` are those of the target, by default of `etx`.
    """
    chosen = frozenset(ops)
    if not chosen:
        return
    passes = [item for item in PIPELINE if kernels is None or not item.makes & chosen]
    kept = DecomposeKept(chosen, decomposition_table(kernels=kernels), keep)
    lowering = [item for item in passes if item.lowers & chosen and keep is None]
    if run_passes(program, (kept, *lowering), observer):
        run_passes(program, (i for i in passes if keep is None or not i.lowers & chosen), observer)


def fit(
    program: ExportedProgram,
    target: Target,
    preserved: Iterable[OpOverload] = (),
    observer: Observer | None = None,
    precision: str = "float32",
) -> ExportedProgram:
    """Return `program` with what `etx` has kernels for, but `target` lacks, decomposed.

    Arguments that a kernel does not convert are converted before; what ExecuTorch's kernels
    compute otherwise is spelled so that they do not; where `target` has integer operators, what
    is quantized is computed by them, where it has attention, that is one. Weights are stored in
    `precision`. The given program stays as it is.
    """
    kernels = target.operators
    lacking = whole_operators() - whole_operators(kernels) - frozenset(preserved)
    lacking = lacking.union(COPY_OF[op] for op in lacking & COPY_OF.keys())
    graphs = graph_modules(program.graph_module)
    nodes = [node for graph in graphs for node in graph.graph.nodes]
    used = {node.target for node in nodes} & lacking
    cast = CastArguments(kernels)
    narrowing = narrow(kernels, precision)
    own = (*integer(kernels, nodes), *whole(kernels, nodes), *narrowing)
    peer = fitting(kernels) if PEER in target.runtime else own
    if not used and not peer and not any(map(cast.wants, nodes)):
        return program
    fitted = copy_program(program)
    lower_kept(fitted, used, observer=observer, kernels=kernels)
    run_passes(fitted, [cast, *peer], observer)
    return fitted
