# SPDX-License-Identifier: BSD-3-Clause
"""``etx::quantized_conv(x, packed, ...)`` -> ``cortex_m::quantized_conv2d_nhwc(x, weight, ...)``,
and so on: a float32 scale for each channel becomes a multiplier and a shift.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from etx_exir.integer.scales import DEQUANTIZE, QUANTIZE, called
from etx_exir.ir import integer_ops as etx
from etx_exir.ir.packed_weights import unpack
from etx_exir.passes.base import NodePass, Pass
from etx_exir.passes.integer import INTEGER, MergeGroups
from etx_exir.passes.simplify.common_subexpressions import CommonSubexpressions
from etx_exir.passes.simplify.merge_views import MergeViews
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from etx_exir.passes.simplify.remove_noops import RemoveNoops
from torch import Tensor
from torch.fx import Graph, Node

from etx_backend_arm.cortex_m import operators as ops
from etx_backend_arm.cortex_m.dim_orders import FollowInputs, ToDimOrders
from etx_backend_arm.cortex_m.fixed_point import LEFT_SHIFT, factor
from etx_backend_arm.cortex_m.moves import (
    PERMUTE,
    VIEW,
    image_padded,
    mean,
    pad,
    permute,
    view,
)
from etx_backend_arm.cortex_m.target_config import Backend, CortexMTargetConfig


class ToCortexM(NodePass):
    """Leave to the operators of namespace ``etx`` what has no counterpart, and say why.

    ExecuTorch's `quantized_linear` reads sums of weights in a build with vectors of bytes, and a
    bias in others; that of ETX reads what there is. `takes_sums` says which of them are made.
    """

    def __init__(self, takes_sums: bool = True) -> None:
        self.takes_sums = takes_sums

    def calls(self, graph: Graph) -> list[Node]:
        """Yield what may have a counterpart."""
        self._scratch: Node | None = None
        return [n for n in graph.nodes if n.target in ROWS or called(n) in BORDERS]

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        """Return the counterpart, or why there is none."""
        row = ROWS.get(node.target) or BORDERS[called(node)]
        made: Node | str = row(self, graph, *node.args)
        return made

    def store(self, tensor: Tensor, name: str) -> Node:
        """Add a constant."""
        return self.constants.add(tensor, name, self.mode)

    def factors(self, scale: Tensor, name: str) -> tuple[Node, Node]:
        """Store the multiplier and the shift of each channel."""
        pairs = torch.tensor([factor(value) for value in scale.double().tolist()])
        parts = pairs.int().T.contiguous()
        return self.store(parts[0], f"{name}_multipliers"), self.store(parts[1], f"{name}_shifts")

    def folded(self, weight: Tensor, bias: Node | None, zero_point: int, name: str) -> Node:
        """Store the bias with what the zero point adds to each sum that has all its products."""
        start = -zero_point * weight.long().flatten(1).sum(1)
        given = self.constant(bias)
        start = start if given is None else start + given
        return self.store(start.int(), f"{name}_start")

    def filled(self, bias: Node | None, channels: int, name: str) -> Node:
        """Return `bias`, or zeros: kernels of ExecuTorch read one of a convolution in groups."""
        zeros = torch.zeros(channels, dtype=torch.int32)
        return self.store(zeros, f"{name}_zeros") if bias is None else bias

    def scratch(self) -> Node:
        """Return the memory that ExecuTorch's kernels ask for, and these do not: one for all."""
        if self._scratch is None:
            self._scratch = self.store(torch.empty(0, dtype=torch.uint8), "no_scratch")
        return self._scratch


def _conv(
    owner: ToCortexM, graph: Graph, x: Node, packed: Node, sums: Node, bias: Node | None,
    scale: Node, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int],
    spacing: list[int], groups: int, zero_point: int, offset: int, low: int, high: int,
) -> Node | str:  # fmt: skip
    weight, scales = owner.constant(packed), owner.constant(scale)
    if weight is None or scales is None:
        return "the weight is not a constant"
    depth, height, width = x.meta["val"].shape[3] // groups, *kernel
    channels = scales.shape[0] // groups
    rows = [unpack(part, channels, height * width * depth) for part in weight.chunk(groups)]
    taps = torch.cat(rows).view(-1, height, width, depth).contiguous()
    numbers = owner.factors(scales, scale.name)
    bounds = (*numbers, low, high, owner.scratch())
    if any(space != 1 for space in spacing):
        if groups != 1 or any(step != 1 for step in stride):
            return "cortex_m::quantized_transpose_conv2d has no groups"
        reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        cut = [r - p for r, p in zip(reach, padding[:2], strict=True)]
        more = [after - before for before, after in zip(padding[:2], padding[2:], strict=True)]
        if min(cut + more) < 0:
            return "cortex_m::quantized_transpose_conv2d adds nothing in front"
        flipped = owner.store(taps.flip(1, 2).contiguous(), f"{packed.name}_flipped")
        args = (x, flipped, bias, spacing, cut, more, dilation, -zero_point, offset, *bounds)
        return graph.call_function(ops.TRANSPOSE_CONV2D, (*args, owner.scratch()))
    if padding[:2] != padding[2:]:
        x, padding = image_padded(graph, x, padding, zero_point), [0, 0, 0, 0]
    window = (stride, padding[:2], dilation)
    if depth == 1 and groups == x.meta["val"].shape[3] and groups != 1:
        stored = owner.store(taps.permute(3, 1, 2, 0).contiguous(), f"{packed.name}_hwc")
        spread = (*window, channels, -zero_point, offset)
        bias = owner.filled(bias, len(scales), packed.name)
        return graph.call_function(ops.DEPTHWISE_CONV2D, (x, stored, bias, *spread, *bounds))
    stored = owner.store(taps, f"{packed.name}_ohwi")
    if groups > 1:
        bias = owner.filled(bias, len(scales), packed.name)
    if not any(padding):
        bias, zero_point = owner.folded(taps, bias, zero_point, packed.name), 0
    given = (x, stored, bias, *window, -zero_point, offset)
    return graph.call_function(ops.CONV2D, (*given, *bounds))


def _depthwise(
    owner: ToCortexM, graph: Graph, x: Node, packed: Node, sums: Node, bias: Node | None,
    scale: Node, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int],
    zero_point: int, offset: int, low: int, high: int,
) -> Node | str:  # fmt: skip
    weight, scales = owner.constant(packed), owner.constant(scale)
    if weight is None or scales is None:
        return "the weight is not a constant"
    if padding[:2] != padding[2:]:
        x, padding = image_padded(graph, x, padding, zero_point), [0, 0, 0, 0]
    stored = owner.store(weight.view(1, *kernel, -1), f"{packed.name}_hwc")
    bias = owner.filled(bias, len(scales), packed.name)
    given = (x, stored, bias, stride, padding[:2], dilation, 1, -zero_point, offset)
    numbers = owner.factors(scales, scale.name)
    rest = (*numbers, low, high, owner.scratch())
    return graph.call_function(ops.DEPTHWISE_CONV2D, (*given, *rest))


def _linear(
    owner: ToCortexM, graph: Graph, x: Node, packed: Node, sums: Node, bias: Node | None,
    scale: Node, zero_point: int, offset: int, low: int, high: int,
) -> Node | str:  # fmt: skip
    """Return `quantized_linear` for one scale. For more, whose numbers it would take one by one and
    keep in RAM, a convolution of points, whose numbers are constants."""
    weight, scales = owner.constant(packed), owner.constant(scale)
    if weight is None or scales is None:
        return "the weight is not a constant"
    depth = x.meta["val"].shape[-1]
    matrix = unpack(weight, scales.shape[0], depth).contiguous()
    if len(set(scales.tolist())) > 1:
        taps = owner.store(matrix.view(-1, 1, 1, depth), f"{packed.name}_ohwi")
        numbers = owner.factors(scales, scale.name)
        rest = (0, offset, *numbers, low, high, owner.scratch())
        bias = owner.folded(matrix, bias, zero_point, packed.name)
        points = view(graph, x, [1, 1, -1, depth])
        out = graph.call_function(ops.CONV2D, (points, taps, bias, [1], [0], [1], *rest))
        out.meta["val"] = points.meta["val"].new_empty(*points.meta["val"].shape[:3], len(scales))
        return view(graph, out, [*x.meta["val"].shape[:-1], len(scales)])
    multiplier, shift = factor(scales.double()[0].item())
    stored = owner.store(matrix, f"{packed.name}_rows")
    start: tuple[Node | None, Node | None] = (bias, None)
    if owner.takes_sums:
        start = (None, owner.folded(matrix, bias, zero_point, packed.name))
    args = (x, stored, *start, -zero_point, 0, offset, [multiplier], [shift], high, low)
    return graph.call_function(ops.LINEAR, args)


def _add(
    owner: ToCortexM, graph: Graph, a: Node, b: Node, a_scale: float, a_zero_point: int,
    b_scale: float, b_zero_point: int, zero_point: int, low: int, high: int,
) -> Node | str:  # fmt: skip
    most = 2 * max(abs(a_scale), abs(b_scale))
    first, second = (a_zero_point, *factor(a_scale / most)), (b_zero_point, *factor(b_scale / most))
    last = (zero_point, *factor(most / 2**LEFT_SHIFT))
    return graph.call_function(ops.ADD, (a, *first, b, *second, *last, low, high))


def _avg_pool(
    owner: ToCortexM, graph: Graph, x: Node, kernel: list[int], stride: list[int],
    padding: list[int], count_include_pad: bool, scale: float, zero_point: int, offset: int,
    low: int, high: int,
) -> Node | str:  # fmt: skip
    if abs(scale - 1) > 1e-6 or zero_point != offset or (low, high) != (-128, 127):
        return "cortex_m::quantized_avg_pool2d keeps scale and zero point"
    if count_include_pad and any(padding):
        x, padding = image_padded(graph, x, padding, zero_point), [0, 0, 0, 0]
    if padding[:2] != padding[2:]:
        return "cortex_m::quantized_avg_pool2d has the same padding on both sides"
    if any(_rest(x, kernel, stride, padding)):
        return "the last window goes beyond the padding"
    numbers = (zero_point, *factor(1.0), owner.scratch())
    args = (x, kernel, stride, padding[:2], False, *numbers)
    return graph.call_function(ops.AVG_POOL2D, args)


def _rest(x: Node, kernel: list[int], stride: list[int], padding: list[int]) -> list[bool]:
    sizes = x.meta["val"].shape[1:3]
    return [s + 2 * p < k for s, k, p in zip(sizes, kernel, padding, strict=False)]


def _max_pool(
    owner: ToCortexM, graph: Graph, x: Node, kernel: list[int], stride: list[int],
    padding: list[int], dilation: list[int],
) -> Node | str:  # fmt: skip
    if padding[:2] != padding[2:]:
        x, padding = image_padded(graph, x, padding, -128), [0, 0, 0, 0]
    args = (x, kernel, stride, padding[:2], dilation, False, 0, 0, -128, 127)
    return graph.call_function(ops.MAX_POOL2D, args)


def _lookup(owner: ToCortexM, graph: Graph, x: Node, table: Node) -> Node | str:
    if x.meta["val"].dtype != torch.int8 or table.meta["val"].dtype != torch.int8:
        return "cortex_m::quantized_activation is of int8"
    return graph.call_function(ops.ACTIVATION, (x, table))


def _mul(
    owner: ToCortexM, graph: Graph, a: Node, b: Node, scale: float, a_zero_point: int,
    b_zero_point: int, zero_point: int, low: int, high: int,
) -> Node | str:  # fmt: skip
    if (low, high) != (-128, 127):
        return "cortex_m::quantized_mul has no other bounds than those of int8"
    args = (a, a_zero_point, b, b_zero_point, zero_point, *factor(scale))
    return graph.call_function(ops.MUL, args)


def _smaller(owner: ToCortexM, graph: Graph, a: Node, b: Node) -> Node | str:
    return _selected(graph, ops.MINIMUM, a, b)


def _larger(owner: ToCortexM, graph: Graph, a: Node, b: Node) -> Node | str:
    return _selected(graph, ops.MAXIMUM, a, b)


def _selected(graph: Graph, operator: Any, a: Node, b: Node) -> Node | str:
    values = a.meta["val"], b.meta["val"]
    if any(value.dtype != torch.int8 for value in values):
        return f"{operator} is of int8"
    return graph.call_function(operator, (a, b))


def _quantize(owner: ToCortexM, graph: Graph, x: Node, *range: Any) -> Node | str:
    inner: Any = x.args[0] if x.target is VIEW else x
    if inner.target in BETWEEN and range[2:] == (-128, 127, torch.int8):
        made: Node | None = BETWEEN[inner.target](owner, graph, inner, *range[:2])
        if made is not None and inner is not x:
            made.meta["val"] = inner.meta["val"].to(torch.int8)
            made = view(graph, made, list(x.meta["val"].shape))
        if made is not None:
            return made
    if x.meta["val"].dtype != torch.float32 or range[-1] != torch.int8:
        return "cortex_m::quantize_per_tensor is of float32 and int8"
    return graph.call_function(ops.QUANTIZE, (x, *range))


def _integers(x: Any) -> tuple[Node, float, int] | None:
    """Return what `x` is made of, its scale and zero point, if it is int8 dequantized."""
    if not isinstance(x, Node) or (x.target != ops.DEQUANTIZE and called(x) != DEQUANTIZE):
        return None
    source, scale, zero_point = x.args[:3]
    is_int8 = isinstance(source, Node) and source.meta["val"].dtype == torch.int8
    return (source, scale, zero_point) if is_int8 else None  # type: ignore[return-value]


def _softmax(owner: ToCortexM, graph: Graph, x: Node, scale: float, offset: int) -> Node | None:
    """`q(softmax(dq(x)))` of 1/256 and -128 -> `cortex_m::softmax(x)`, of 5 integer bits."""
    given, dim = _integers(x.args[0]), int(x.args[1])  # type: ignore[arg-type]
    if given is None or (scale, offset) != (1 / 256, -128):
        return None
    source, step, zero_point = given
    multiplier, shift = factor(step)
    shift += SOFTMAX_BITS
    if not 0 <= shift <= 31:
        return None
    least = -(31 * 2**SOFTMAX_BITS >> shift)
    args = (source, dim, zero_point, -128, multiplier, shift, least)
    return graph.call_function(ops.SOFTMAX, args)


def _products(owner: ToCortexM, graph: Graph, x: Node, scale: float, offset: int) -> Node | None:
    """`q(bmm(dq(a), dq(b)))` -> `cortex_m::quantized_batch_matmul(a, transpose(b))`."""
    a, b = _integers(x.args[0]), _integers(x.args[1])
    if a is None or b is None or a[0].meta["val"].shape[-1] > MOST_PRODUCTS:
        return None
    columns: Any = b[0]
    if columns.target in (PERMUTE, ops.TRANSPOSE) and columns.args[1] == [0, 2, 1]:
        columns = columns.args[0]
    else:
        columns = graph.call_function(ops.TRANSPOSE, (b[0], [0, 2, 1]))
        columns.meta["val"] = b[0].meta["val"].permute(0, 2, 1).contiguous()
    numbers = (offset, *factor(a[1] * b[1] / scale), owner.scratch())
    return graph.call_function(ops.BATCH_MATMUL, (a[0], -a[2], columns, -b[2], *numbers))


def _quotient(owner: ToCortexM, graph: Graph, x: Node, scale: float, offset: int) -> Node | None:
    """`q(dq(a) / dq(b))` -> `cortex_m::quantized_div(a, b)`."""
    a, b = _integers(x.args[0]), _integers(x.args[1])
    if a is None or b is None:
        return None
    return graph.call_function(ops.DIV, (a[0], a[2], b[0], b[2], offset, a[1] / (b[1] * scale)))


def _dequantize(owner: ToCortexM, graph: Graph, x: Node, *range: Any) -> Node | str:
    if x.meta["val"].dtype != torch.int8:
        return "cortex_m::dequantize_per_tensor is of int8"
    return graph.call_function(ops.DEQUANTIZE, (x, *range))


ROWS: dict[Any, Any] = {
    etx.CONV: _conv,
    etx.DEPTHWISE_CONV: _depthwise,
    etx.LINEAR: _linear,
    etx.ADD: _add,
    etx.AVG_POOL: _avg_pool,
    etx.MAX_POOL: _max_pool,
    etx.LOOKUP: _lookup,
    etx.MUL: _mul,
    torch.ops.aten.maximum.default: _larger,
    torch.ops.aten.minimum.default: _smaller,
    torch.ops.aten.constant_pad_nd.default: pad,
    etx.MEAN: mean,
    PERMUTE: permute,
}
BETWEEN: dict[Any, Any] = {
    torch.ops.aten._softmax.default: _softmax,
    torch.ops.aten.bmm.default: _products,
    torch.ops.aten.div.Tensor: _quotient,
}
"""What has no operator of integers in namespace ``etx``: float between dequantize and quantize."""
SOFTMAX_BITS = 26
MOST_PRODUCTS = 2**15 - 1
"""In a sum of `cortex_m::quantized_batch_matmul`."""
BORDERS: dict[Any, Any] = {QUANTIZE: _quantize, DEQUANTIZE: _dequantize}
CORTEX_M: tuple[Pass, ...] = (
    *(item for item in INTEGER if not isinstance(item, MergeGroups)),  # weights are not packed here
    ToCortexM(),
    MergeViews(),
    RemoveNoops(),
    RemoveDeadCode(),
    CommonSubexpressions(),
    FollowInputs(),
)
"""What a quantized program runs to become operators of `cortex_m::`, in this order."""


def passes_for(
    config: CortexMTargetConfig, passes: Sequence[Any] = CORTEX_M, is_explicit: bool = False
) -> list[Any]:
    """Return passes as ExecuTorch's kernels of a processor need them.

    `is_explicit`: images have the sizes (N, H, W, C), and not (N, C, H, W) with channels last in
    memory.
    """
    takes_sums = config.backend is Backend.MVE
    found = [ToCortexM(takes_sums) if isinstance(item, ToCortexM) else item for item in passes]
    return found if is_explicit else [*found, ToDimOrders(), FollowInputs()]


def lower_to_cortex_m(edge: Any) -> Any:
    """Run the passes on an `EdgeProgramManager` and return the new one."""
    return edge.transform(list(CORTEX_M))
