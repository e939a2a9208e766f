# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the dialects a program passes through: ATen, Core ATen, Edge.

ATen: what `torch.export` gives. Core: functional, decomposed. Edge: no views, memory formats as
dim orders, every operator with an out variant. Each holds all rules of those before it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Any

from torch import Tensor
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from etx_exir.errors import Finding, UnsupportedOperatorError, VerificationError, where
from etx_exir.ir.constants import Constants
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.ops import COPY_OF
from etx_exir.ir.out_variants import out_variant
from etx_exir.ir.symbolic import FUNCTIONS
from etx_exir.lower.decompose import decomposition_table

__all__ = ["Dialect", "breaches", "verify"]

SIZES = frozenset({"aten::sym_size", "aten::sym_numel", "aten::_local_scalar_dense"})


class Dialect(IntEnum):
    """The stages of a program; a later one has all rules of the earlier ones."""

    ATEN = 0
    CORE = 1
    EDGE = 2


def verify(program: ExportedProgram, dialect: Dialect, allowed: Iterable[OpOverload] = ()) -> None:
    """Raise with every breach of the rules of `dialect`; operators in `allowed` are let pass."""
    broken, unsupported = breaches(program, dialect, allowed)
    if broken:
        raise VerificationError(dialect.name.capitalize(), broken + unsupported)
    if unsupported:
        raise UnsupportedOperatorError(dialect.name.capitalize(), unsupported)


def breaches(
    program: ExportedProgram, dialect: Dialect, allowed: Iterable[OpOverload] = ()
) -> tuple[list[Finding], list[Finding]]:
    """Return what breaks the rules of `dialect`, and the operators without an out variant."""
    allow = frozenset(allowed)
    findings = [*_signature(program), *_constants(program)]
    unsupported: list[Finding] = []
    decomposed = decomposition_table() if dialect is Dialect.CORE else {}
    for module in graph_modules(program.graph_module):
        module.graph.lint()
        for node in module.graph.nodes:
            findings += _value(node)
            if node.op != "call_function":
                continue
            findings += _target(module, node)
            if not isinstance(node.target, OpOverload) or node.target in allow:
                continue
            if dialect >= Dialect.CORE:
                findings += _functional(node, decomposed)
            if dialect >= Dialect.EDGE:
                findings += _edge(node)
                unsupported += _out_variant(node)
    return findings, unsupported


def _signature(program: ExportedProgram) -> Iterator[Finding]:
    names = [node.name for node in program.graph.find_nodes(op="placeholder")]
    declared = [spec.arg.name for spec in program.graph_signature.input_specs]
    if names != declared:
        yield Finding(f"inputs are {names}, the signature says {declared}")
    outputs: Any = program.graph.output_node().args[0]
    returned = [node.name for node in outputs if isinstance(node, Node)]
    specs = program.graph_signature.output_specs
    said = [spec.arg.name for spec in specs if hasattr(spec.arg, "name")]
    constant = len(outputs) - len(returned)
    if returned != said[: len(returned)] and not constant:
        yield Finding(f"outputs are {returned}, the signature says {said}")


def _constants(program: ExportedProgram) -> Iterator[Finding]:
    for node, tensor in Constants(program).items():
        value = node.meta.get("val")
        if not isinstance(value, Tensor):
            continue
        if (value.dtype, tuple(value.shape)) != (tensor.dtype, tuple(tensor.shape)):
            yield Finding(
                f"constant {node.name} is {tensor.dtype}{list(tensor.shape)}, its node says "
                f"{value.dtype}{list(value.shape)}"
            )


def _value(node: Node) -> Iterator[Finding]:
    if node.op in ("placeholder", "call_function") and "val" not in node.meta:
        yield Finding('meta["val"] is missing', where(node))


def _target(module: GraphModule, node: Node) -> Iterator[Finding]:
    target: Any = node.target
    known: tuple[type, ...] = (OpOverload, HigherOrderOperator)
    if isinstance(target, known) or target in FUNCTIONS or target is operator.getitem:
        return
    if getattr(target, "__module__", "") in ("math", "torch.utils._sympy.functions"):
        return
    yield Finding(f"{target} is not an operator", where(node), "expected a torch.ops overload")


def _functional(node: Node, decomposed: dict[Any, Callable[..., Any]]) -> Iterator[Finding]:
    op: Any = node.target
    if op._schema.is_mutable:
        yield Finding(f"{op} writes to its arguments", where(node), "use its functional form")
    if op in decomposed and op._schema.name not in SIZES:
        yield Finding(f"{op} is not Core ATen", where(node), "decompose it")


def _edge(node: Node) -> Iterator[Finding]:
    op: Any = node.target
    if op in COPY_OF:
        yield Finding(f"{op} is a view", where(node), f"use {COPY_OF[op]}")
    if node.kwargs.get("memory_format") is not None:
        yield Finding(f"{op} has a memory format", where(node), "use etx_exir.ir.dim_order")


def _out_variant(node: Node) -> Iterator[Finding]:
    op: Any = node.target
    if op._schema.name in SIZES or out_variant(op) is not None:
        return
    yield Finding(
        f"{op} cannot be written to a file: it has no out variant",
        where(node),
        "rewrite that line with other operators, delegate it to a backend that takes it, or "
        f'register "{op._schema.name}.out(..., *, Tensor(a!) out) -> Tensor(a!)" with '
        "torch.library and give the runtime a kernel of that name",
    )
