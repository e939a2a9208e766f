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
from torch.utils._sympy.value_ranges import bound_sympy

from etx_exir.emit.arguments import encode_scalar
from etx_exir.emit.method import MethodEmitter, Reference
from etx_exir.errors import EmitError
from etx_exir.ir.layout import same_sizes
from etx_exir.ir.symbolic import BINARY, FUNCTIONS, READS, TENSOR, UNARY

LARGEST_POWER = 4


def is_symbolic(node: Node) -> bool:
    """Tell whether `node` computes a number rather than a tensor."""
    return node.target in READS or node.target in FUNCTIONS


def emit(emitter: MethodEmitter, node: Node) -> Reference:
    """Append the steps that compute `node`."""
    target, value = node.target, node.meta.get("val")
    if target in READS:
        return _read(emitter, node)
    if target is torch.sym_sum:
        return _sum(emitter, [_operand(emitter, arg) for arg in node.args[0]], value)  # type: ignore[union-attr]
    args = [_operand(emitter, arg) for arg in node.args if arg is not None]
    result = slot(emitter, value)
    if target is operator.mod and not all(_is_natural(emitter, arg) for arg in node.args):
        return _modulo(emitter, args, result)
    if target in BINARY:
        return primitive(emitter, BINARY[target], [*args, result])
    if target in UNARY and len(args) == 1:
        return primitive(emitter, UNARY[target], [*args, result])
    if target is torch.sym_ite:
        return primitive(emitter, "sym_ite", [*args, result])
    if target is math.floor:
        return _floor(emitter, args[0], result)
    if target is operator.ne:
        same = emitter.values.add(Bool(bool_val=False))
        primitive(emitter, "eq", [*args, same])
        return primitive(emitter, "sym_not", [same, result])
    if target is operator.pow and _is_small(node.args[1]):
        return _power(emitter, args[0], node.args[1], result)  # type: ignore[arg-type]
    if target in (operator.and_, operator.or_) and isinstance(value, (bool, torch.SymBool)):
        return _logical(emitter, args, result, target is operator.and_)
    if target in TENSOR:
        return _by_tensors(emitter, node, result)
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


def given(emitter: MethodEmitter, node: Node) -> tuple[int, int]:
    """Add a number that the caller gives; return its slot and the one that the graph reads.

    Runtimes take any value where an instruction reads the slot; it holds the example's before.
    """
    value = node.meta["val"]
    emitter.bounds.name_origin(value.node.expr, f"input {node.name!r}")
    index = slot(emitter, value)
    hint = value.node.hint
    if hint is not None:
        member: Any = emitter.values.items[index].val
        emitter.values.items[index].val = type(member)(hint)
    if any(user.op != "output" for user in node.users):
        return index, index
    zero = emitter.values.integer(0)
    return index, primitive(emitter, "add", [index, zero, slot(emitter, value)])


def primitive(emitter: MethodEmitter, name: str, args: list[int]) -> int:
    """Append a primitive operator; its result is the last of `args`."""
    emitter.call(f"executorch_prim::{name}", "Scalar", args, args[:-1], args[-1:])
    return args[-1]


def _sum(emitter: MethodEmitter, terms: list[int], value: Any) -> int:
    total = terms[0]
    for term in terms[1:]:
        total = primitive(emitter, "add", [total, term, slot(emitter, value)])
    return total


def _is_natural(emitter: MethodEmitter, value: Any) -> bool:
    """Tell whether `value` cannot be negative."""
    number = value.meta["val"] if isinstance(value, Node) else value
    if not isinstance(number, torch.SymInt):
        return isinstance(number, int) and number >= 0
    return bool(bound_sympy(number.node.expr, emitter.bounds.ranges).lower >= 0)


def _modulo(emitter: MethodEmitter, args: list[int], result: int) -> int:
    """a % b = a - a // b * b, with the sign of b in every runtime."""
    member: Any = type(emitter.values.items[result].val)
    quotient = primitive(emitter, "floordiv", [*args, emitter.values.add(member())])
    product = primitive(emitter, "mul", [quotient, args[1], emitter.values.add(member())])
    return primitive(emitter, "sub", [args[0], product, result])


def _floor(emitter: MethodEmitter, value: int, result: int) -> int:
    """floor(x) = -ceil(-x)."""
    negative = primitive(emitter, "neg", [value, emitter.values.add(Double(double_val=0.0))])
    ceiling = primitive(emitter, "ceil", [negative, emitter.values.add(Int(int_val=0))])
    return primitive(emitter, "neg", [ceiling, result])


def _is_small(exponent: Any) -> bool:
    return isinstance(exponent, int) and 1 <= exponent <= LARGEST_POWER


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


def _by_tensors(emitter: MethodEmitter, node: Node, result: int) -> int:
    """Append the kernel that computes `node` on tensors of one element."""
    whole = isinstance(node.meta.get("val"), (int, torch.SymInt))
    dtype = torch.int64 if whole else torch.float64
    args = [_as_tensor(emitter, arg, dtype) for arg in node.args]
    out = emitter.fresh(torch.empty((), dtype=dtype, device="meta"))
    emitter.call(*TENSOR[node.target], [*args, out, out], args, [out])
    emitter.call("aten::_local_scalar_dense", "", [out, result], [out], [result])
    return result


def _as_tensor(emitter: MethodEmitter, value: Any, dtype: torch.dtype) -> int:
    if not isinstance(value, Node):
        return emitter.constant(torch.tensor(value, dtype=dtype))
    number, out = emitter.lookup(value), emitter.fresh(torch.empty((), dtype=dtype, device="meta"))
    emitter.call("aten::scalar_tensor", "out", [number, out, out], [number], [out])
    return out


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
    expected = node.meta["val"].shape
    given = node.args[1] if len(node.args) > 1 else None
    if isinstance(given, (list, tuple)) and len(given) == len(expected):
        spelled = [_operand(emitter, size) for size in given]
        if not _is_dims(node):
            return spelled
    open_dims = [d for d, size in enumerate(expected) if not isinstance(size, int)]
    if len(open_dims) <= 1:
        inferred = set(open_dims)
        return [
            emitter.values.integer(-1 if d in inferred else int(size))
            for d, size in enumerate(expected)
        ]
    sizes = []
    for size in expected:
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
