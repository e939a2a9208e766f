# SPDX-License-Identifier: BSD-3-Clause
"""What a program asks of the shapes of its inputs, for the runtime to enforce."""

from __future__ import annotations

from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from etx_schema.problem import CONSTRAINTS_KEY
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree
from torch.utils._sympy.value_ranges import bound_sympy

__all__ = ["CONSTRAINTS_KEY", "constraints_of", "input_names"]

LARGEST = 2**31 - 1


def constraints_of(program: ExportedProgram) -> dict[str, Any]:
    """Return names of the inputs and constraints of their dimensions, in flattening order."""
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    specs = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    rows = []
    for spec, name in zip(specs, input_names(program), strict=True):
        value = nodes[spec.arg.name].meta.get("val") if spec.arg.name in nodes else None
        dims = []
        if isinstance(value, torch.Tensor):
            dims = [_dim(size, program) for size in value.shape]
        row: dict[str, Any] = {"name": name, "dims": dims}
        if isinstance(value, torch.SymInt):
            row["value"] = _dim(value, program)
        rows.append(row)
    return {"inputs": rows}


def input_names(program: ExportedProgram) -> list[str]:
    """Return names of the flat inputs: the argument's name and the path into its containers."""
    specs = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    fallback = [str(s.arg.name) for s in specs]
    in_spec = program.call_spec.in_spec
    if in_spec is None:
        return fallback
    try:
        dummy = pytree.tree_unflatten(list(range(in_spec.num_leaves)), in_spec)
        paths, _ = pytree.tree_flatten_with_path(dummy)
    except (TypeError, ValueError):
        return fallback
    if len(paths) != len(fallback):
        return fallback
    arguments = _argument_names(program)
    return [
        _path_name(path, name, arguments) for (path, _), name in zip(paths, fallback, strict=True)
    ]


def _argument_names(program: ExportedProgram) -> list[str]:
    root = program.module_call_graph[0] if program.module_call_graph else None
    names = getattr(root and root.signature, "forward_arg_names", None)
    return list(names or ())


def _path_name(path: tuple[Any, ...], fallback: str, arguments: list[str]) -> str:
    """Return `x` or `x['key'][0]`: the name of the argument, then the path in its containers."""
    if len(path) <= 2:
        return fallback
    inner = "".join(pytree.keystr((key,)) for key in path[2:])
    first = path[1]
    if isinstance(first, pytree.MappingKey):
        return f"{first.key}{inner}"
    if not isinstance(first, pytree.SequenceKey):
        return fallback
    name = arguments[first.idx] if first.idx < len(arguments) else f"args[{first.idx}]"
    return f"{name}{inner}"


def _dim(size: int | torch.SymInt, program: ExportedProgram) -> dict[str, Any] | None:
    if isinstance(size, int):
        return None
    expr = size.node.expr
    if not expr.free_symbols:
        return None
    lower, upper = _bounds(expr, program)
    row: dict[str, Any] = {"symbol": str(expr), "divisor": 1, "min": lower, "max": upper}
    if expr.is_symbol:
        return row
    step, offset, symbol = _linear(expr)
    if symbol is not None:
        row.update(symbol=str(symbol), expr=str(expr))
        row["divisor"] = step if offset == 0 else 1
    return row


def _bounds(expr: sympy.Expr, program: ExportedProgram) -> tuple[int, int | None]:
    known = {s: r for s, r in program.range_constraints.items() if s in expr.free_symbols}
    found = bound_sympy(expr, known)
    lower = int(found.lower) if bool(found.lower >= 0) else 0
    return lower, int(found.upper) if bool(found.upper <= LARGEST) else None


def _linear(expr: sympy.Expr) -> tuple[int, int, sympy.Symbol | None]:
    """Return `step, offset, symbol` of ``step * symbol + offset``; no symbol for other forms."""
    symbols = list(expr.free_symbols)
    if len(symbols) == 1 and expr.is_polynomial(symbols[0]):
        polynomial = sympy.Poly(expr, symbols[0])
        if polynomial.degree() == 1:
            step, offset = (int(c) for c in polynomial.all_coeffs())
            return (step, offset, symbols[0]) if step > 0 else (1, 0, None)
    return 1, 0, None
