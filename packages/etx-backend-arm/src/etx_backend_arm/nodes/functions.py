# SPDX-License-Identifier: BSD-3-Clause
"""Functions of one activation, element by element: a TABLE of int8, or operators of floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.table import (
    Profile,
    arguments,
    floating,
    integers,
    lowers,
    static_shape,
)
from etx_backend_arm.nodes.wide import ENTRIES, STEP, table16
from etx_backend_arm.quantized import DEQUANTIZE, Look, Step
from etx_backend_arm.tosa import DType, NanPropagationMode, Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
INVERSES = (
    aten.acos.default,
    aten.acosh.default,
    aten.asin.default,
    aten.asinh.default,
    aten.atan.default,
    aten.atanh.default,
    aten.cosh.default,
    aten.div.Scalar_mode,
    aten.div.Tensor_mode,
    aten.erfinv.default,
    aten.expm1.default,
    aten.floor_divide.default,
    aten.log10.default,
    aten.log2.default,
    aten.logit.default,
    aten.remainder.Scalar,
    aten.sign.default,
    aten.sinh.default,
    aten.tan.default,
    aten.trunc.default,
)
"""Functions that few networks have: a table in integers."""
FUNCTIONS = (
    *INVERSES,
    aten.abs.default,
    aten.add.Scalar,
    aten.add.Tensor,
    aten.ceil.default,
    aten.cos.default,
    aten.div.Scalar,
    aten.div.Tensor,
    aten.elu.default,
    aten.erf.default,
    aten.exp.default,
    aten.floor.default,
    aten.gelu.default,
    aten.hardsigmoid.default,
    aten.hardswish.default,
    aten.leaky_relu.default,
    aten.log.default,
    aten.log1p.default,
    aten.mish.default,
    aten.mul.Scalar,
    aten.mul.Tensor,
    aten.neg.default,
    aten.pow.Tensor_Scalar,
    aten.reciprocal.default,
    aten.round.default,
    aten.rsqrt.default,
    aten.rsub.Scalar,
    aten.selu.default,
    aten.sigmoid.default,
    aten.silu.default,
    aten.sin.default,
    aten.softplus.default,
    aten.sqrt.default,
    aten.sub.Scalar,
    aten.sub.Tensor,
    aten.tanh.default,
)


def one_activation(node: Node, look: Look) -> str | None:
    """All operands but one are numbers or constants of one element."""
    varying = []
    for each in node.all_input_nodes:
        held = look(each) if each.target is not DEQUANTIZE else look(each.args[0])
        if held is None:
            varying.append(each)
        elif held.numel() != 1:
            return f"{each.name}, an operand of {node.name}, is a constant of many elements"
    if len(varying) == 1:
        return None
    return f"{node.name} has {len(varying)} activations, a table takes one"


def _evaluate(values: Values, node: Node, known: dict[Node, Tensor]) -> Tensor:
    """Return what a node makes of tensors and constants."""

    def held(each: Node) -> Tensor:
        tensor = known.get(each, values.parameter(each))
        return _evaluate(values, each, known) if tensor is None else tensor

    made: Tensor = node.target(  # type: ignore[operator]
        *map_arg(node.args, held), **map_arg(node.kwargs, held)
    )
    return made


def table(values: Values, node: Node) -> None:
    """Lower to TABLE: the result of each of the 256 integers, as the program itself computes it."""
    call = Call(values, node)
    step = call.step
    assert step is not None
    if step.form.is_wide:
        _wide_table(values, call, step)
        return
    integers = torch.arange(-128, 128).to(torch.int8)
    results = _evaluate(values, step.result, {step.sources[0]: integers}).reshape(-1)
    operands = [call.get(call.activations[0]), values.constant(call.fresh("entries"), results)]
    made = call.emit(Op.TABLE, fbs.TableAttribute(), operands, "looked_up", call.shape)
    values.define(step.result, made, call.layout)


def _wide_table(values: Values, call: Call, step: Step) -> None:
    """Every 128th result in a TABLE, which interpolates: as much off as the function is bent.

    Where some are beyond int16, all are halves: those between them and the rest are not cut off.
    """
    form, given = step.form, step.forms[0]
    integers = (torch.arange(ENTRIES, dtype=torch.float64) - ENTRIES // 2) * STEP
    reals = dict.fromkeys(call.activations, (integers * given.scale).float())
    results = _evaluate(values, step.clamp or step.node, reals).double() / form.scale
    value = call.get(call.activations[0])
    results, bounds = results.nan_to_num(), torch.iinfo(torch.int16)
    halved = 2 if float(results.abs().max()) > bounds.max else 1
    entries = (results / halved).clamp(bounds.min, bounds.max)
    call.done(table16(call, value, entries, "looked_up"), form.scale * halved / STEP)


for target in FUNCTIONS:
    lowers(target, when=(integers, static_shape, one_activation), profile=Profile.INT)(table)


PROPAGATE = NanPropagationMode.PROPAGATE
FLOATS = (floating, static_shape)
Formula = Callable[["Floats", str], str]


class Floats:
    """Writes formulas of floats of one shape, that of the result or another."""

    def __init__(self, call: Call, shape: list[int] | None = None, prefix: str = "f") -> None:
        self.call, self.shape = call, shape or call.shape
        self._prefix, self._count = prefix, 0

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{self._prefix}_{kind}_{self._count}"

    def one(self, op: Op, attribute: Any, *inputs: str) -> str:
        """Add an operator."""
        return self.call.emit(op, attribute, inputs, self._name(op.name.lower()), self.shape)

    def number(self, value: float, of: str) -> str:
        """Return a constant of the type of ``of``."""
        return self.call.number(value, len(self.shape), of)

    def mul(self, first: str, second: str | float) -> str:
        """Return the product."""
        other = self.number(second, first) if isinstance(second, float) else second
        name = self.call.fresh(self._name("mul"))
        return self.call.graph.multiply(first, other, name, self.shape)

    def add(self, first: str, second: str | float) -> str:
        """Return the sum."""
        other = self.number(second, first) if isinstance(second, float) else second
        return self.one(Op.ADD, fbs.AddAttribute(), first, other)

    def neg(self, value: str) -> str:
        """Return the negative."""
        zero = self.call.graph.zero_point(0, self.call.graph.dtype(value))
        return self.one(Op.NEGATE, fbs.NegateAttribute(), value, zero, zero)

    def reciprocal(self, value: str) -> str:
        """Return one over the value."""
        return self.one(Op.RECIPROCAL, fbs.ReciprocalAttribute(), value)

    def clamp(self, value: str, low: float, high: float) -> str:
        """Return the value between two bounds."""
        name = self.call.fresh(self._name("clamp"))
        return self.call.graph.clamp(value, low, high, name, self.shape)

    def where_positive(self, value: str, below: str, above: str | None = None) -> str:
        """Return ``above``, or the value, where the value is greater than zero, else ``below``."""
        name = self.call.fresh(self._name("greater"))
        operands = [value, self.number(0.0, value)]
        attribute = fbs.GreaterAttribute()
        positive = self.call.graph.operator(
            Op.GREATER, attribute, operands, name, self.shape, DType.BOOL
        )
        return self.call.graph.operator(
            Op.SELECT,
            fbs.SelectAttribute(),
            [positive, above or value, below],
            self.call.fresh(self._name("select")),
            self.shape,
            self.call.graph.dtype(value),
        )


def _operator(op: Op, attribute: Callable[[], Any]) -> Formula:
    return lambda f, x: f.one(op, attribute(), x)


LEAST_THRESHOLD = 20
LARGEST = math.inf
DIRECT: dict[object, Formula] = {
    aten.abs.default: _operator(Op.ABS, fbs.AbsAttribute),
    aten.ceil.default: _operator(Op.CEIL, fbs.CeilAttribute),
    aten.cos.default: _operator(Op.COS, fbs.CosAttribute),
    aten.erf.default: _operator(Op.ERF, fbs.ErfAttribute),
    aten.exp.default: _operator(Op.EXP, fbs.ExpAttribute),
    aten.floor.default: _operator(Op.FLOOR, fbs.FloorAttribute),
    aten.log.default: _operator(Op.LOG, fbs.LogAttribute),
    aten.neg.default: lambda f, x: f.neg(x),
    aten.reciprocal.default: lambda f, x: f.reciprocal(x),
    aten.rsqrt.default: _operator(Op.RSQRT, fbs.RsqrtAttribute),
    aten.sigmoid.default: _operator(Op.SIGMOID, fbs.SigmoidAttribute),
    aten.silu.default: lambda f, x: f.mul(x, f.one(Op.SIGMOID, fbs.SigmoidAttribute(), x)),
    aten.sin.default: _operator(Op.SIN, fbs.SinAttribute),
    aten.tanh.default: _operator(Op.TANH, fbs.TanhAttribute),
}


def _sixth(f: Floats, x: str) -> str:
    return f.mul(f.clamp(f.add(x, 3.0), 0.0, 6.0), 1 / 6)


def _gelu(f: Floats, x: str) -> str:
    if f.call.arguments[1] == "tanh":
        inner = f.add(x, f.mul(f.mul(f.mul(x, x), x), 0.044715))
        bent = f.one(Op.TANH, fbs.TanhAttribute(), f.mul(inner, math.sqrt(2 / math.pi)))
    else:
        bent = f.one(Op.ERF, fbs.ErfAttribute(), f.mul(x, math.sqrt(0.5)))
    return f.mul(f.mul(x, 0.5), f.add(bent, 1.0))


def _elu(f: Floats, x: str) -> str:
    _, alpha, scale, input_scale = f.call.arguments
    bent = f.one(Op.EXP, fbs.ExpAttribute(), f.mul(f.clamp(x, -LARGEST, 0.0), float(input_scale)))
    made = f.where_positive(x, f.mul(f.add(bent, -1.0), float(alpha)))
    return made if scale == 1 else f.mul(made, float(scale))


def _leaky(f: Floats, x: str) -> str:
    return f.where_positive(x, f.mul(x, float(f.call.arguments[1])))


def _softplus(f: Floats, x: str, beta: float = 1.0) -> str:
    scaled = x if beta == 1 else f.mul(x, beta)
    size = f.one(Op.ABS, fbs.AbsAttribute(), scaled)
    small = f.add(f.one(Op.EXP, fbs.ExpAttribute(), f.neg(size)), 1.0)
    bent = f.one(Op.LOG, fbs.LogAttribute(), small)
    made = f.add(f.clamp(scaled, 0.0, LARGEST), bent)
    return made if beta == 1 else f.mul(made, 1 / beta)


def _mish(f: Floats, x: str) -> str:
    return f.mul(x, f.one(Op.TANH, fbs.TanhAttribute(), _softplus(f, x)))


def _plus(f: Floats, x: str, sign: float = 1.0) -> str:
    _, other, alpha = f.call.arguments
    return f.add(x, sign * float(other) * alpha)


def _rsub(f: Floats, x: str) -> str:
    _, other, alpha = f.call.arguments
    return f.add(f.mul(x, -float(alpha)), float(other))


def _tan(f: Floats, x: str) -> str:
    down = f.reciprocal(f.one(Op.COS, fbs.CosAttribute(), x))
    return f.mul(f.one(Op.SIN, fbs.SinAttribute(), x), down)


def _trunc(f: Floats, x: str) -> str:
    below = f.one(Op.CEIL, fbs.CeilAttribute(), x)
    return f.where_positive(x, below, f.one(Op.FLOOR, fbs.FloorAttribute(), x))


def _logarithm(base: float) -> Formula:
    return lambda f, x: f.mul(f.one(Op.LOG, fbs.LogAttribute(), x), 1 / math.log(base))


FORMULAS: dict[object, Formula] = {
    **DIRECT,
    aten.add.Scalar: _plus,
    aten.log10.default: _logarithm(10.0),
    aten.log2.default: _logarithm(2.0),
    aten.tan.default: _tan,
    aten.trunc.default: _trunc,
    aten.div.Scalar: lambda f, x: f.mul(x, 1 / float(f.call.arguments[1])),
    aten.elu.default: _elu,
    aten.gelu.default: _gelu,
    aten.hardsigmoid.default: _sixth,
    aten.hardswish.default: lambda f, x: f.mul(x, _sixth(f, x)),
    aten.leaky_relu.default: _leaky,
    aten.mish.default: _mish,
    aten.mul.Scalar: lambda f, x: f.mul(x, float(f.call.arguments[1])),
    aten.rsub.Scalar: _rsub,
    aten.softplus.default: lambda f, x: _softplus(f, x, float(f.call.arguments[1])),
    aten.sub.Scalar: partial(_plus, sign=-1.0),
}


def smooth(node: Node, look: Look) -> str | None:
    """Where PyTorch goes over to the identity, the formula is equal to it in float32."""
    _, beta, threshold = arguments(node)
    if beta > 0 and threshold >= LEAST_THRESHOLD:
        return None
    return (
        f"{node.name} has beta={beta} and threshold={threshold}; "
        f"it needs beta > 0 and a threshold of {LEAST_THRESHOLD} or more"
    )


MORE_CHECKS: dict[object, tuple[Callable[[Node, Look], str | None], ...]] = {
    aten.softplus.default: (smooth,),
}


def formula(values: Values, node: Node) -> None:
    """Lower to the row of ``FORMULAS``: in float32, where it is more than one operator."""
    call = Call(values, node)
    value = call.get(call.activations[0])
    if node.target not in DIRECT:
        value = call.as_float32(value, "wider")
    call.done(FORMULAS[node.target](Floats(call), value))


for each in FORMULAS:
    lowers(each, when=(*FLOATS, *MORE_CHECKS.get(each, ())))(formula)
