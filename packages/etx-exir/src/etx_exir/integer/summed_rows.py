# SPDX-License-Identifier: BSD-3-Clause
"""``int_mm(quantize(x), w.t()) * scales of rows * scales of columns`` by the pt2e flow's operators.

So ``torchao.quantize_`` writes a layer with int8 weights whose activations are rounded with a range
of each row that is chosen at run time. torchao's product for x86-64 takes bytes without a sign: 128
is added to the integers, and 128 times the sums of the weight's columns subtracted from the result.
Here it becomes a linear layer of a row with its whole range, as near to the float layer or nearer.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed
from torch.fx import Node

from etx_exir.integer.scales import INT8, called
from etx_exir.ir.ops import MOVES_OF, VIEW, Moves, arguments, permutation

__all__ = ["has_summed_rows", "spell_summed_rows", "take_bias", "turned"]

aten = torch.ops.aten
decomposed = torch.ops.quantized_decomposed
CHOOSE, QUANTIZE = (f"torchao.{name}_affine.default" for name in ("choose_qparams", "quantize"))
CAST = "aten.to.dtype"
SHAPES = ("aten.reshape.default", "aten.view.default", "aten.flatten.using_ints")
SUBTRACT = ("aten.sub.Tensor", "aten.sub_.Tensor")
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
SHIFT = 128


@dataclass(frozen=True)
class Rows:
    """A tensor whose rows are rounded to int8, and the nodes that hold their scales and zeros."""

    x: Node
    scale: Node
    zero: Node
    is_symmetric: bool


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
    sums, scale = _behind(rest.args[0]), _behind(rest.args[1], SHAPES)
    product = _product(sums)
    if product is None:
        return False
    rounded, weight = product
    rows = _rows(rounded)
    if rows is None or scale is not rows.scale:
        return False
    if not rows.is_symmetric and not _is_of_zeros(shift, rows, weight):
        return False
    if rows.is_symmetric and shift is not None:
        return False
    _write(node, rows.x, weight, columns)
    return True


def _behind(node: Any, shapes: tuple[str, ...] = ()) -> Any:
    """Return what `node` is, as other floats and of another shape."""
    while called(node) in shapes or _is_cast(node, *FLOATS):
        node = node.args[0]
    return node


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
        if not _is(correction, "aten.mul.Tensor", SHIFT) or not _sums_of(
            correction.args[0], matrix
        ):
            return None
        added: Any = rows.args[0] if _is_cast(rows, torch.uint8) else None
        wide: Any = added.args[0] if _is(added, "aten.add.Tensor", SHIFT) else None
        if not _is_cast(wide, torch.int32):
            return None
        rows = wide.args[0]
    return _behind(rows, SHAPES), weight


def _is(node: Any, name: str, number: int) -> bool:
    return called(node) == name and node.args[1] == number and not node.kwargs


def _sums_of(node: Any, matrix: Node) -> bool:
    """Tell whether ``node`` is the sums of the columns of ``matrix``."""
    return called(node) == "aten.sum.dim_IntList" and node.args == (matrix, [0], True)


def turned(matrix: Any) -> Node | None:
    """Return the int8 tensor whose two dimensions ``matrix`` has in the other order."""
    is_turned = MOVES_OF.get(getattr(matrix, "target", None)) is Moves.PERMUTE
    weight = matrix.args[0] if is_turned and permutation(matrix) == [1, 0] else None
    is_int8 = isinstance(weight, Node) and weight.meta["val"].dtype is torch.int8
    return weight if is_int8 else None


def _rows(quantize: Any) -> Rows | None:
    """Return what ``quantize`` rounds, if it does so with a range of each row of it."""
    if called(quantize) != QUANTIZE:
        return None
    given = arguments(quantize)
    x, scale, zero = given["input"], given["scale"], given["zero_point"]
    picks = [pick for pick in (scale, zero) if getattr(pick, "target", None) is operator.getitem]
    if [pick.args[1] for pick in picks] != [0, 1] or scale.args[0] is not zero.args[0]:
        return None
    choose = scale.args[0]
    if called(choose) != CHOOSE or choose.args[0] is not x:
        return None
    chosen = arguments(choose)
    row = [*[1] * (x.meta["val"].dim() - 1), x.meta["val"].shape[-1]]
    for each, dtype in ((given, given["output_dtype"]), (chosen, chosen["target_dtype"])):
        bounds = each["quant_min"], each["quant_max"]
        if dtype is not torch.int8 or bounds != INT8 or [*each["block_size"]] != row:
            return None
    if chosen["mapping_type"] not in ("SYMMETRIC", "ASYMMETRIC"):
        return None
    return Rows(x, scale, zero, chosen["mapping_type"] == "SYMMETRIC")


def _is_of_zeros(shift: Any, rows: Rows, weight: Node) -> bool:
    """Tell whether ``shift`` is the rows' zero points times their scales times the sums of rows."""
    if called(shift) != "aten.mul.Tensor":
        return False
    zeros, sums = shift.args[0], _behind(shift.args[1])
    if called(zeros) != "aten.mul.Tensor":
        return False
    points, scales = (_behind(arg, SHAPES) for arg in zeros.args)
    is_sum = called(sums) == "aten.sum.dim_IntList" and sums.args == (weight, [-1])
    return points is rows.zero and scales is rows.scale and is_sum


def _write(node: Node, x: Node, weight: Node, columns: Node) -> None:
    graph, value = node.graph, x.meta["val"]
    dtype = value.dtype
    with graph.inserting_before(node):
        call = graph.call_function
        if value.dim() == 1:
            x = call(VIEW, (x, [1, *value.shape]))
        choose = call(decomposed.choose_qparams_per_token_asymmetric.default, (x, torch.int8))
        scale, zero = (call(operator.getitem, (choose, i)) for i in (0, 1))
        how = (scale, zero, *INT8, torch.int8)
        integers = call(decomposed.quantize_per_token.default, (x, *how))
        rounded = call(decomposed.dequantize_per_token.default, (integers, *how, dtype))
        of_channels = (weight, columns, None, 0, *INT8, torch.int8)
        real = call(decomposed.dequantize_per_channel.default, of_channels, {"out_dtype": dtype})
        result = call(aten.linear.default, (rounded, real))
        take_bias(node, result, dtype)
        if dtype is not node.meta["val"].dtype:
            result = call(aten.to.dtype, (result, node.meta["val"].dtype))
    node.target, node.args, node.kwargs = VIEW, (result, [-1, *node.meta["val"].shape[1:]]), {}


def take_bias(node: Node, linear: Node, dtype: torch.dtype) -> None:
    """Let ``linear`` add what is added to its result ``node``, a number for each column."""
    outputs, sizes = _reader(node), node.meta["val"].shape[-1:]
    while outputs is not None and called(outputs) in SHAPES:
        if outputs.meta["val"].shape[-1:] != sizes:
            return
        outputs = _reader(outputs)
    if outputs is None or called(outputs) not in ("aten.add.Tensor", "aten.add_.Tensor"):
        return
    operands: Any = outputs.args
    result, bias = operands
    if outputs.kwargs or not isinstance(bias, Node) or bias.op != "placeholder":
        return
    if bias.meta["val"].shape == sizes and bias.meta["val"].dtype is dtype:
        linear.args = (*linear.args, bias)
        outputs.replace_all_uses_with(result)
        node.graph.erase_node(outputs)


def _reader(node: Node) -> Node | None:
    """Return the only node that reads ``node``, checks apart."""
    users = [user for user in node.users if "_assert" not in called(user)]
    return users[0] if len(users) == 1 else None
