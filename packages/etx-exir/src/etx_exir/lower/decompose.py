# SPDX-License-Identifier: BSD-3-Clause
"""ATen to Core ATen: torch's decompositions and ours, except operators that have kernels."""

from __future__ import annotations

import gc
import operator
import warnings
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from typing import Any

import torch
from torch._export.utils import _collect_all_valid_cia_ops, _special_op_to_preserve_cia
from torch._export.verifier import SpecViolationError
from torch._ops import OpOverload
from torch.export import ExportedProgram, default_decompositions
from torch.export.exported_program import _decompose_exported_program
from torch.fx import GraphModule, Node

from etx_exir.errors import LoweringError
from etx_exir.integer.affine import is_affine, spell_affine
from etx_exir.ir.equal_values import note_exported
from etx_exir.ir.ops import COPY_OF
from etx_exir.ir.out_variants import out_variant
from etx_exir.ir.own_ops import POINTWISE
from etx_exir.ir.recurrent import STEPS
from etx_exir.ir.recurrent_nets import of_any_length
from etx_exir.ir.stand_in import leave_out
from etx_exir.ir.targets import default_operators
from etx_exir.ir.write_origins import note_writers
from etx_exir.lower.copy_program import copy_program
from etx_exir.lower.decompose_complex import PARTS, complex_by_parts, is_complex_call
from etx_exir.lower.decompose_quantized import quantized
from etx_exir.lower.decompositions import OURS, SIMPLER
from etx_exir.lower.plain_names import plain, restore
from etx_exir.lower.tokens import remove_tokens
from etx_exir.lower.unalias_loops import merges_writes, unalias_loops, unalias_writes
from etx_exir.passes import PIPELINE

__all__ = ["decompose", "decomposition_table", "run_decompositions", "whole_operators"]

Table = dict[Any, Callable[..., Any]]


def whole_operators(kernels: Container[str] | None = None) -> frozenset[OpOverload]:
    """Return what stays whole for a target with these kernels, by default those of `etx`.

    An operator does that has a kernel, as itself or as the copying form of a view, and does
    not stand in SIMPLER; and one that a pass lowers. Of ours, those do that have steps.
    """
    return _whole_by_default() if kernels is None else frozenset(_whole(kernels))


@cache
def _whole_by_default() -> frozenset[OpOverload]:
    return frozenset(_whole(default_operators()))


def _whole(kernels: Container[str]) -> Iterator[OpOverload]:
    for op in _written_operators():
        if _key(op) in kernels and op not in SIMPLER:
            yield op
    for view, copy in COPY_OF.items():
        if _key(copy) in kernels and view not in SIMPLER:
            yield view
    yield from (op for op in (*STEPS, *POINTWISE) if _key(op) in kernels)
    for item in PIPELINE:
        yield from item.lowers


@cache
def _written_operators() -> tuple[OpOverload, ...]:
    """Return torch's operators that a kernel of ours may stand for, except views and copies."""
    names = {key.partition(".")[0] for key in default_operators()}
    names = {name.removeprefix("aten::") for name in names if name.startswith("aten::")}
    found = []
    for name in sorted(names):
        packet = getattr(torch.ops.aten, name)
        ops = [getattr(packet, overload) for overload in packet.overloads()]
        found += [op for op in ops if not any(a.is_out for a in op._schema.arguments)]
    return tuple(op for op in found if op not in COPY_OF and not _copies(op))


def _copies(op: OpOverload) -> bool:
    return op._schema.name.endswith("_copy")


def _key(op: OpOverload) -> str | None:
    variant = out_variant(op)
    return None if variant is None else variant.key


def decomposition_table(
    preserved: Iterable[OpOverload] = (),
    kernels: Container[str] | None = None,
    registered: frozenset[str] | None = None,
) -> Table:
    """Return the table to Core ATen and what has `kernels`, without the `preserved` operators."""
    table = {**_of_torch(registered or _registered()), **OURS}
    table.update(quantized())
    for op in (*whole_operators(kernels), *preserved):
        table.pop(op, None)
    return table


@lru_cache(maxsize=1)
def _of_torch(_composites: frozenset[str]) -> Table:
    """Return torch's decompositions, which take long, while these operators are composite."""
    table = default_decompositions()
    return {op: table[op] for op in table}


def decompose(program: ExportedProgram, preserved: Iterable[OpOverload] = ()) -> ExportedProgram:
    """Return `program` functional, in Core ATen and what target `etx` has kernels for.

    The given program stays as it is.
    """
    if merges_writes(program):
        raise LoweringError(
            "the program has more outputs than its signature, which lost a write: torch's "
            "run_decompositions did so, for two buffers get one value; give the program that "
            "torch.export.export returns"
        )
    whole = whole_operators().union(preserved)
    registered = _registered()
    table = decomposition_table(preserved, registered=registered)
    if all(_is_final(node, whole, table) for node in program.graph.nodes):
        copied = copy_program(program)
        note_exported(program, copied, traced=False)
        note_writers(program, copied)
        return copied
    source, first = program, None
    if is_affine(program):
        source = copy_program(program)
        spell_affine(source)
    while True:
        try:
            result = _decomposed(source, complex_by_parts(table), registered)
            break
        except Exception as error:
            first = first or error
            source = copy_program(source)
            if not leave_out(source, error):
                raise LoweringError(f"the program cannot be decomposed: {first}") from first
    remove_tokens(result)
    note_exported(program, result, traced=True)
    note_writers(program, result)
    return result


def _decomposed(
    program: ExportedProgram, table: Table, registered: frozenset[str]
) -> ExportedProgram:
    with _no_collection(), of_any_length(), warnings.catch_warnings():
        # torch copies the structures of inputs, whose leaves warn of their own class.
        warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)
        spelled, names = plain(program)
        taken = unalias_loops(spelled)
        try:
            result: ExportedProgram = run_decompositions(taken, table, registered)
            is_whole = not merges_writes(result)
        except SpecViolationError:
            is_whole = False
        if not is_whole:
            result = run_decompositions(unalias_writes(taken), table, registered)
    result._state_dict = dict(result.state_dict)
    result._constants = dict(result.constants)
    restore(result, names, program)
    return result


def run_decompositions(
    program: ExportedProgram, table: Table, registered: frozenset[str] | None = None
) -> ExportedProgram:
    """Return what ``program.run_decompositions(table)`` does.

    That lists torch's 500 composite operators each time and overrides every one while it traces.
    Here they are listed once, and those are overridden that stand in the program, are kept, or
    decompose into something else than their own kernel does.
    """
    composites = _composites(registered or _registered())
    overridden = {op: _special_op_to_preserve_cia for op in composites if op not in table}
    met = set(_targets(program))
    for op in composites & table.keys():
        if op in met or not _is_own_kernel(op, table[op]):
            overridden[op] = table[op]
    result: ExportedProgram = _decompose_exported_program(
        program,
        cia_to_decomp=overridden,
        python_decomp_table={op: f for op, f in table.items() if op not in composites},
        joint_loss_index=None,
        decompose_custom_triton_ops=False,
    )
    return result


def _registered() -> frozenset[str]:
    """Return what names the composite operators: those registered, and namespaces that are open."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
    return frozenset((*names, *torch.ops._dir))


@lru_cache(maxsize=1)
def _composites(_registered: frozenset[str]) -> frozenset[Any]:
    return frozenset(_collect_all_valid_cia_ops())


def _targets(program: ExportedProgram) -> Iterator[Any]:
    for module in program.graph_module.modules():
        if isinstance(module, GraphModule):
            yield from (node.target for node in module.graph.nodes)


def _is_own_kernel(op: OpOverload, decomposition: Callable[..., Any]) -> bool:
    return isinstance(decomposition, partial) and decomposition.keywords.get("kernel") is op


@contextmanager
def _no_collection() -> Iterator[None]:
    """Hold back the garbage collector, which walks all nodes again and again while they grow."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _is_final(node: Node, whole: frozenset[Any], table: Table) -> bool:
    """Tell whether torch's decomposition, which traces the program again, would keep `node`."""
    if node.op != "call_function":
        return node.op in ("placeholder", "output")
    target = node.target
    if target is operator.getitem:
        return True
    if not isinstance(target, OpOverload) or target._schema.is_mutable:
        return False
    if target in PARTS and is_complex_call(node.args, node.kwargs):
        return False
    return target in whole or (torch.Tag.core in target.tags and target not in table)
