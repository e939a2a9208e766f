# SPDX-License-Identifier: BSD-3-Clause
"""``int_mm(quantize(x), w.t()) * scales of rows * scales of columns`` by the pt2e flow's operators.

So ``torchao.quantize_`` writes a layer with int8 weights whose activations are rounded with a range
of each row that is chosen at run time. torchao's product for x86-64 takes bytes without a sign: 128
is added to the integers, and 128 times the sums of the weight's columns subtracted from the result.
Here it becomes a linear layer. A row's range that is symmetric is that of ``cat(x, -x)``, since the
flow has no symmetric one for rows.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed
from torch.fx import Node

from etx_exir.integer.rounded_rows import Rows, rounded_rows
from etx_exir.integer.scales import INT8, called
from etx_exir.ir.ops import MOVES_OF, VIEW, Moves, permutation

__all__ = ["has_summed_rows", "spell_summed_rows", "turned", "write_linear"]

aten = torch.ops.aten
decomposed = torch.ops.quantized_decomposed
CAST = "aten.to.dtype"
ADD = ("aten.add.Tensor", "aten.add_.Tensor")
SUBTRACT = ("aten.sub.Tensor", "aten.sub_.Tensor")
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
SHIFT = 128


def has_summed_rows(node: Node) -> bool:
    """Tell whether `node` is the product of integers with which such a layer begins."""
    return called(node) == "aten._int_mm.default"


def spell_summed_rows(node: Node) -> bool:
    """Write a layer whose last scaling is `node` as ``linear`` of what is dequantized."""
    rest, columns = node.args
    channels = node.meta["val"].shape[-1:]
    if not isinstance(columns, Node) or columns.meta["val"].shape != channels:
        return False
    rest = _behind(rest)
    shift = None
    if called(rest) in SUBTRACT:
        rest, shift = map(_behind, rest.args)
    if called(rest) != "aten.mul.Tensor":
        return False
    sums, scale = _behind(rest.args[0]), _behind(rest.args[1], reshapes=True)
    product = _product(sums)
    if product is None:
        return False
    rounded, weight = product
    rows = rounded_rows(rounded)
    if rows is None or scale is not rows.scale:
        return False
    if not rows.is_symmetric and not _is_of_zeros(shift, rows, weight):
        return False
    if rows.is_symmetric and shift is not None:
        return False
    _write(node, rows, weight, columns)
    return True


def _behind(node: Any, reshapes: bool = False) -> Any:
    """Return what `node` is as other floats, or in another shape where it `reshapes`."""
    while _is_cast(node, *FLOATS) or (reshapes and _is_reshaped(node)):
        node = node.args[0]
    return node


def _is_reshaped(node: Any) -> bool:
    return MOVES_OF.get(getattr(node, "target", None)) is Moves.RESHAPE


def _is_cast(node: Any, *dtypes: torch.dtype) -> bool:
    return called(node) == CAST and node.meta["val"].dtype in dtypes


def _product(sums: Any) -> tuple[Any, Node] | None:
    """Return the rounded rows and the weight of which ``sums`` are the sums of products."""
    shifted = called(sums) in SUBTRACT
    product, correction = sums.args if shifted else (sums, sums)
    if called(product) != "aten._int_mm.default":
        return None
    rows, matrix = product.args
    weight = turned(matrix)
    if weight is None:
        return None
    if shifted:
        if not _is_of_sums(correction, matrix):
            return None
        added: Any = rows.args[0] if _is_cast(rows, torch.uint8) else None
        wide: Any = added.args[0] if _is(added, "aten.add.Tensor", SHIFT) else None
        if not _is_cast(wide, torch.int32):
            return None
        rows = wide.args[0]
    return _behind(rows, reshapes=True), weight


def _is(node: Any, name: str, number: int) -> bool:
    return called(node) == name and node.args[1] == number and not node.kwargs


def _is_of_sums(node: Any, matrix: Node) -> bool:
    """Tell whether ``node`` is the shift times the sums of the columns of ``matrix``."""
    if not _is(node, "aten.mul.Tensor", SHIFT):
        return False
    sums = node.args[0]
    return called(sums) == "aten.sum.dim_IntList" and sums.args == (matrix, [0], True)


def turned(matrix: Any) -> Node | None:
    """Return the int8 tensor whose two dimensions ``matrix`` has in the other order."""
    is_turned = MOVES_OF.get(getattr(matrix, "target", None)) is Moves.PERMUTE
    weight = matrix.args[0] if is_turned and permutation(matrix) == [1, 0] else None
    is_int8 = isinstance(weight, Node) and weight.meta["val"].dtype is torch.int8
    return weight if is_int8 else None


def _is_of_zeros(shift: Any, rows: Rows, weight: Node) -> bool:
    """Tell whether ``shift`` is the rows' zero points times their scales times the sums of rows."""
    if called(shift) != "aten.mul.Tensor":
        return False
    zeros, sums = shift.args[0], _behind(shift.args[1])
    if called(zeros) != "aten.mul.Tensor":
        return False
    points, scales = (_behind(arg, reshapes=True) for arg in zeros.args)
    is_sum = called(sums) == "aten.sum.dim_IntList" and sums.args == (weight, [-1])
    return points is rows.zero and scales is rows.scale and is_sum


def _write(node: Node, rows: Rows, weight: Node, columns: Node) -> None:
    """Let ``node`` be the layer, or what adds a bias to it be one with a bias."""
    graph, x, value = node.graph, rows.x, rows.x.meta["val"]
    dtype = value.dtype
    with graph.inserting_before(node):
        call = graph.call_function
        if value.dim() == 1:
            x = call(VIEW, (x, [1, *value.shape]))
        ranged = x
        if rows.is_symmetric:
            ranged = call(aten.cat.default, ([x, call(aten.neg.default, (x,))], -1))
        choose = call(decomposed.choose_qparams_per_token_asymmetric.default, (ranged, torch.int8))
        scale, zero = (call(operator.getitem, (choose, i)) for i in (0, 1))
        how = (scale, zero, *INT8, torch.int8)
        integers = call(decomposed.quantize_per_token.default, (x, *how))
        rounded = call(decomposed.dequantize_per_token.default, (integers, *how, dtype))
        of_channels = (weight, columns, None, 0, *INT8, torch.int8)
        real = call(decomposed.dequantize_per_channel.default, of_channels, {"out_dtype": dtype})
    write_linear(node, rounded, real, dtype)


def write_linear(node: Node, x: Node, weight: Node, dtype: torch.dtype) -> None:
    """Let ``node`` be the product of ``x`` and a weight, in its own shape and dtype.

    What adds a number for each column to it becomes a product with a bias.
    """
    value = node.meta["val"]
    sizes = value.shape[-1:]
    shaped: tuple[Any, ...] = (VIEW, [-1, *sizes])
    last = _reader(node)
    while last is not None and _is_reshaped(last) and last.meta["val"].shape[-1:] == sizes:
        shaped = last.target, *last.args[1:]
        last = _reader(last)
    bias = _bias(last, sizes, dtype)
    places: list[Any] = [(node, (VIEW, [-1, *sizes]), ())]
    if last is not None and bias is not None:
        places.append((last, shaped, (bias,)))
    for place, (target, *how), more in places:
        with node.graph.inserting_before(place):
            result = node.graph.call_function(aten.linear.default, (x, weight, *more))
            if dtype is not place.meta["val"].dtype:
                to = (result, place.meta["val"].dtype)
                result = node.graph.call_function(aten.to.dtype, to)
        place.target, place.args, place.kwargs = target, (result, *how), {}


def _bias(node: Node | None, sizes: torch.Size, dtype: torch.dtype) -> Node | None:
    """Return the constant that `node` adds, if it is one number a column."""
    if node is None or called(node) not in ADD or node.kwargs:
        return None
    bias = node.args[1]
    if not isinstance(bias, Node) or bias.op != "placeholder":
        return None
    value = bias.meta["val"]
    return bias if value.shape == sizes and value.dtype is dtype else None


def _reader(node: Node) -> Node | None:
    """Return the only node that reads ``node``, checks apart."""
    users = [user for user in node.users if "_assert" not in called(user)]
    return users[0] if len(users) == 1 else None
