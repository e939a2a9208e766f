# SPDX-License-Identifier: BSD-3-Clause
"""What a program asks of the shapes of its inputs, for the runtime to enforce."""

from __future__ import annotations

import ast
import math
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from etx_schema.problem import CONSTRAINTS_KEY
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree
from torch.utils._sympy.functions import Mod, PythonMod
from torch.utils._sympy.printers import PythonPrinter
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from etx_exir.ir.constants import fake_mode_of

__all__ = ["CONSTRAINTS_KEY", "constraints_of", "input_names", "ranges_of"]

LARGEST = 2**31 - 1
Ranges = dict[sympy.Symbol, ValueRanges[Any]]
MODULO = (Mod, PythonMod)
ALLOWED = (
    *(ast.Expression, ast.Name, ast.Load, ast.Constant, ast.Compare, ast.BinOp, ast.UnaryOp),
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.USub),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)


def constraints_of(program: ExportedProgram) -> dict[str, Any]:
    """Return names of the inputs, constraints of their dimensions, and what relates these."""
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    specs = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    symbols = Symbols(program)
    rows = []
    for spec, name in zip(specs, input_names(program), strict=True):
        value = nodes[spec.arg.name].meta.get("val") if spec.arg.name in nodes else None
        dims = []
        if isinstance(value, torch.Tensor):
            dims = [symbols.row(size) for size in value.shape]
        row: dict[str, Any] = {"name": name, "dims": dims}
        if isinstance(value, torch.SymInt):
            row["value"] = symbols.row(value, least=None)
        rows.append(row)
    result: dict[str, Any] = {"inputs": rows}
    if guards := symbols.guards():
        result["guards"] = guards
    return result


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
    if len(path) < 2:
        return fallback
    inner = "".join(pytree.keystr((key,)) for key in path[2:])
    first = path[1]
    if isinstance(first, pytree.MappingKey):
        return f"{first.key}{inner}"
    if not isinstance(first, pytree.SequenceKey):
        return fallback
    if not inner and first.idx >= len(arguments):
        return fallback
    name = arguments[first.idx] if first.idx < len(arguments) else f"args[{first.idx}]"
    return f"{name}{inner}"


def relations_of(program: ExportedProgram) -> list[Any]:
    """Return the relations between symbolic sizes on which the program was specialised."""
    env = fake_mode_of(program).shape_env
    guards = [] if env is None else [env.replace(guard.expr) for guard in env.guards]
    return [relation for guard in guards for relation in conjuncts(guard)]


def ranges_of(program: ExportedProgram) -> Ranges:
    """Return the ranges of the program's symbols, narrowed by what relates them."""
    ranges = {s: r for s, r in program.range_constraints.items() if s.is_symbol}
    for relation in relations_of(program):
        if isinstance(relation, (sympy.Ge, sympy.Gt)):
            relation = relation.reversed
        if not isinstance(relation, (sympy.Le, sympy.Lt)):
            continue
        gap = int(isinstance(relation, sympy.Lt))
        low, high = (bound_sympy(side, ranges) for side in (relation.lhs, relation.rhs))
        if relation.lhs.is_symbol:
            upper = min(low.upper, high.upper - gap)
            ranges[relation.lhs] = ValueRanges(min(low.lower, upper), upper)
        if relation.rhs.is_symbol:
            lower = max(high.lower, low.lower + gap)
            ranges[relation.rhs] = ValueRanges(lower, max(high.upper, lower))
    return ranges


def dimension_names(program: ExportedProgram) -> dict[sympy.Symbol, sympy.Symbol]:
    """Return for each symbol that `torch.export.Dim` named the symbol of that name."""
    env: Any = fake_mode_of(program).shape_env
    if env is None:
        return {}
    given: dict[str, str] = env.source_name_to_debug_name
    found: dict[sympy.Symbol, str] = {}
    for symbol, sources in env.var_to_sources.items():
        for source in sources:
            constant = getattr(source, "source_name", "")
            name = constant or given.get(source.name)
            final = env.replace(symbol)
            if name and name.isidentifier() and final.is_symbol:
                found[final] = min(name, found.get(final, name))
    taken = {str(symbol) for symbol in env.var_to_sources}
    names = list(found.values())
    return {
        symbol: sympy.Symbol(name, **symbol._assumptions_orig)
        for symbol, name in found.items()
        if names.count(name) == 1 and name not in taken
    }


class Symbols:
    """What is known of the symbolic sizes among a program's inputs."""

    def __init__(self, program: ExportedProgram) -> None:
        self._ranges = ranges_of(program)
        self._seen: set[sympy.Symbol] = set()
        self._names = dimension_names(program)
        self._relations = relations_of(program)
        self._divisors: dict[sympy.Expr, int] = {}
        for relation in self._relations:
            if (found := _divisibility(relation)) is not None:
                expr, divisor = found
                self._divisors[expr] = math.lcm(divisor, self._divisors.get(expr, 1))

    def row(self, size: int | torch.SymInt, least: int | None = 0) -> dict[str, Any] | None:
        """Return what `size` must be, at least `least`; None where it is fixed."""
        if isinstance(size, int) or not size.node.expr.free_symbols:
            return None
        expr = size.node.expr
        self._seen |= expr.free_symbols
        bounds = self._bounds(expr)
        low = -LARGEST if least is None else least
        lower = int(bounds.lower) if bool(bounds.lower >= low) else least
        upper = int(bounds.upper) if bool(bounds.upper <= LARGEST) else None
        named = expr.xreplace(self._names)
        row: dict[str, Any] = {"symbol": str(named), "divisor": 1, "min": lower, "max": upper}
        if expr in self._divisors:
            row["divisor"] = self._divisors[expr]
        if not expr.is_symbol and (text := _as_python(named)) is not None:
            row["symbol"] = str(min(named.free_symbols, key=str))
            row["expr"] = text
            row["divisor"] = math.lcm(row["divisor"], _factor(expr))
        return row

    def guards(self) -> list[str]:
        """Return the relations between sizes that the rows do not already state."""
        texts = []
        for relation in self._relations:
            known = relation.free_symbols <= self._seen
            divisibility = _divisibility(relation)
            stated = divisibility is not None and divisibility[0].is_symbol
            if not known or stated or self._is_implied(relation):
                continue
            text = _as_python(relation.xreplace(self._names))
            if text is not None and text not in texts:
                texts.append(text)
        return texts

    def _bounds(self, expr: sympy.Expr) -> ValueRanges[Any]:
        return bound_sympy(
            expr, {s: self._ranges[s] for s in expr.free_symbols & set(self._ranges)}
        )

    def _is_implied(self, relation: Any) -> bool:
        """Tell whether just the ranges of the symbols make `relation` true."""
        difference = self._bounds(relation.lhs - relation.rhs)
        lower, upper = difference.lower, difference.upper
        implied: dict[type, bool] = {
            sympy.Ge: bool(lower >= 0),
            sympy.Gt: bool(lower > 0),
            sympy.Le: bool(upper <= 0),
            sympy.Lt: bool(upper < 0),
            sympy.Ne: bool(lower > 0) or bool(upper < 0),
        }
        return implied.get(type(relation), False)


def conjuncts(guard: Any) -> list[Any]:
    """Return the relations that all hold when `guard` does."""
    if isinstance(guard, sympy.And):
        return [relation for part in guard.args for relation in conjuncts(part)]
    return [guard] if isinstance(guard, sympy.core.relational.Relational) else []


def _divisibility(relation: Any) -> tuple[sympy.Expr, int] | None:
    """Return `expr, divisor` of ``expr % divisor == 0``."""
    if isinstance(relation, sympy.Eq) and relation.rhs == 0 and isinstance(relation.lhs, MODULO):
        expr, divisor = relation.lhs.args
        if divisor.is_Integer:
            return expr, int(divisor)
    return None


def _factor(expr: sympy.Expr) -> int:
    """Return the largest number that divides every coefficient of a polynomial."""
    symbols = sorted(expr.free_symbols, key=str)
    if not expr.is_polynomial(*symbols):
        return 1
    return abs(int(sympy.Poly(expr, *symbols).content()))


def _as_python(expr: Any) -> str | None:
    """Return `expr` in Python's syntax; None where it is more than arithmetic of integers."""
    text = PythonPrinter().doprint(expr)
    try:
        parsed = ast.parse(text, mode="eval")
    except SyntaxError:
        return None
    simple = all(
        isinstance(node, ALLOWED) and type(getattr(node, "value", 0)) is int
        for node in ast.walk(parsed)
    )
    return ast.unparse(parsed) if simple else None
