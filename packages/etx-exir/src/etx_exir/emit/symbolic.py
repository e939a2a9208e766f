# SPDX-License-Identifier: BSD-3-Clause
"""Integers and numbers that are computed at run time, by primitive operators."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from etx_schema import Bool, Double, Int
from torch.fx import Node

from etx_exir.emit.arguments import encode_scalar
from etx_exir.emit.errors import EmitError
from etx_exir.emit.method import MethodEmitter, Reference
from etx_exir.emit.tensors import same_sizes

aten = torch.ops.aten

BINARY: dict[Any, str] = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.floordiv: "floordiv",
    operator.truediv: "truediv",
    operator.mod: "mod",
    operator.eq: "eq",
    operator.gt: "gt",
    operator.lt: "lt",
    operator.ge: "ge",
    operator.le: "le",
    torch.sym_max: "sym_max",
    torch.sym_min: "sym_min",
    max: "sym_max",
    min: "sym_min",
}
UNARY: dict[Any, str] = {
    operator.neg: "neg",
    math.ceil: "ceil",
    math.trunc: "trunc",
    round: "round",
    torch.sym_float: "sym_float",
    torch.sym_int: "sym_int",
    torch.sym_not: "sym_not",
    operator.not_: "sym_not",
}
OTHER = {math.floor, torch.sym_ite, operator.pow, operator.ne, operator.and_, operator.or_}
READS: dict[Any, tuple[str, str]] = {
    aten.sym_size.int: ("aten::sym_size", "int"),
    aten.sym_numel.default: ("aten::sym_numel", ""),
    aten._local_scalar_dense.default: ("aten::_local_scalar_dense", ""),
    aten.item.default: ("aten::_local_scalar_dense", ""),
}


def is_symbolic(node: Node) -> bool:
    """Tell whether `node` computes a number rather than a tensor."""
    target = node.target
    return target in READS or target in BINARY or target in UNARY or target in OTHER


def emit(emitter: MethodEmitter, node: Node) -> Reference:
    """Append the step that computes `node`."""
    target = node.target
    if target in READS:
        return _read(emitter, node)
    args = [_operand(emitter, arg) for arg in node.args]
    result = slot(emitter, node.meta.get("val"))
    if target in BINARY:
        return primitive(emitter, BINARY[target], [*args, result])
    if target in UNARY:
        return primitive(emitter, UNARY[target], [*args, result])
    if target is torch.sym_ite:
        return primitive(emitter, "sym_ite", [*args, result])
    if target is math.floor:
        one = emitter.values.integer(1)
        return primitive(emitter, "floordiv", [*args, one, result])
    if target is operator.ne:
        same = emitter.values.add(Bool(bool_val=False))
        primitive(emitter, "eq", [*args, same])
        return primitive(emitter, "sym_not", [same, result])
    if target is operator.pow and isinstance(node.args[1], int) and node.args[1] >= 1:
        return _power(emitter, args[0], node.args[1], result)
    if target in (operator.and_, operator.or_):
        return _logical(emitter, args, result, target is operator.and_)
    raise EmitError(f"{emitter.where()}: no primitive operator computes {target}")


def _read(emitter: MethodEmitter, node: Node) -> Reference:
    name, overload = READS[node.target]
    args = [_operand(emitter, arg) for arg in node.args]
    result = slot(emitter, node.meta.get("val"))
    emitter.call(name, overload, [*args, result], args, [result])
    return result


def _operand(emitter: MethodEmitter, value: Any) -> int:
    if isinstance(value, Node):
        return emitter.lookup(value)
    return encode_scalar(emitter.values, value)


def slot(emitter: MethodEmitter, value: Any) -> int:
    """Add a slot that a step writes, of the kind of `value`."""
    if isinstance(value, (bool, torch.SymBool)):
        return emitter.values.add(Bool(bool_val=False))
    if isinstance(value, (float, torch.SymFloat)):
        return emitter.values.add(Double(double_val=0.0))
    return emitter.values.add(Int(int_val=0))


def primitive(emitter: MethodEmitter, name: str, args: list[int]) -> int:
    """Append `executorch_prim::name` and return its result, the last of `args`."""
    emitter.call(f"executorch_prim::{name}", "Scalar", args, args[:-1], args[-1:])
    return args[-1]


def _power(emitter: MethodEmitter, base: int, exponent: int, result: int) -> int:
    one = emitter.values.integer(1)
    primitive(emitter, "mul", [base, one, result])
    for _ in range(exponent - 1):
        primitive(emitter, "mul", [result, base, result])
    return result


def _logical(emitter: MethodEmitter, args: list[int], result: int, both: bool) -> int:
    constant = emitter.values.boolean(not both)
    chosen = [args[0], args[1], constant] if both else [args[0], constant, args[1]]
    return primitive(emitter, "sym_ite", [*chosen, result])


def size_of(emitter: MethodEmitter, value: int, dim: int) -> int:
    """Append the step that reads a size of tensor `value`, unless it is static."""
    size = emitter.fakes[value].shape[dim]
    if isinstance(size, int):
        return emitter.values.integer(size)
    result = slot(emitter, size)
    args = [value, emitter.values.integer(dim), result]
    emitter.call("aten::sym_size", "int", args, [value], [result])
    return result


def size_value(emitter: MethodEmitter, size: int | torch.SymInt) -> int:
    """Return the value of a size, or append the steps that compute it from what is at hand."""
    if isinstance(size, int):
        return emitter.values.integer(size)
    return _expression(emitter, size.node.expr)


EXPRESSIONS = {
    "Add": "add",
    "Mul": "mul",
    "Max": "sym_max",
    "Min": "sym_min",
    "FloorDiv": "floordiv",
    "Mod": "mod",
    "PythonMod": "mod",
}


def _expression(emitter: MethodEmitter, expr: sympy.Expr) -> int:
    if expr.is_Integer:
        return emitter.values.integer(int(expr))
    found = _at_hand(emitter, expr)
    if found is not None:
        return found
    name = EXPRESSIONS.get(expr.func.__name__)
    if name is None:
        raise EmitError(f"{emitter.where()}: no primitive operator computes the size {expr}")
    total, *rest = (_expression(emitter, part) for part in expr.args)
    for part in rest:
        total = primitive(emitter, name, [total, part, emitter.values.add(Int(int_val=0))])
    return total


def _at_hand(emitter: MethodEmitter, expr: sympy.Expr) -> int | None:
    """Return a number, or a size of an input or of a tensor before this node, that is `expr`."""
    node = emitter.current
    assert node is not None
    tensors = list(emitter.listing.inputs)
    for earlier in itertools.takewhile(lambda n: n is not node, node.graph.nodes):
        known, reference = earlier.meta.get("val"), emitter.environment.get(earlier)
        if not isinstance(reference, int):
            continue
        if isinstance(known, torch.SymInt) and known.node.expr == expr:
            return reference
        tensors.append(reference)
    for value in tensors:
        for dim, size in enumerate(emitter.fakes[value].shape if value in emitter.fakes else ()):
            if not isinstance(size, int) and size.node.expr == expr:
                return size_of(emitter, value, dim)
    return None


def view_sizes(emitter: MethodEmitter, node: Node, source: int) -> list[int] | None:
    """Return the sizes of a dynamic view as value indices, or None where they are not at hand."""
    wanted = node.meta["val"].shape
    given = node.args[1] if len(node.args) > 1 else None
    if isinstance(given, (list, tuple)) and len(given) == len(wanted):
        spelled = [_operand(emitter, size) for size in given]
        if not _is_dims(node):
            return spelled
    open_dims = [d for d, size in enumerate(wanted) if not isinstance(size, int)]
    if len(open_dims) <= 1:
        inferred = set(open_dims)
        return [
            emitter.values.integer(-1 if d in inferred else int(size))
            for d, size in enumerate(wanted)
        ]
    sizes = []
    for size in wanted:
        found = _same_dim(emitter, source, size)
        if found is None:
            return None
        sizes.append(found)
    return sizes


def _is_dims(node: Node) -> bool:
    return "squeeze" in str(node.target)


def _same_dim(emitter: MethodEmitter, source: int, size: Any) -> int | None:
    if isinstance(size, int):
        return emitter.values.integer(size)
    for dim, other in enumerate(emitter.fakes[source].shape):
        if same_sizes([size], [other]):
            return size_of(emitter, source, dim)
    return None
