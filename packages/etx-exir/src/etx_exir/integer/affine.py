# SPDX-License-Identifier: BSD-3-Clause
"""What ``torchao.quantize_`` makes of layers, by the operators of the pt2e flow.

``dequantize_affine`` of a weight becomes ``dequantize_per_channel`` or ``…_channel_group``; a range
of each row, chosen at run time, ``choose_qparams_per_token_asymmetric``, ``quantize_per_token`` and
``dequantize_per_token``; a product of int8 weights that is scaled afterwards, ``linear`` of what is
dequantized before, as is one of integers. Other forms are left to torchao's decompositions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from etx_exir.integer.rounded_rows import (
    DEQUANTIZE,
    QUANTIZE,
    bounds,
    is_by_row,
    rounded_rows,
)
from etx_exir.integer.scales import INT8, called
from etx_exir.integer.summed_rows import has_summed_rows, spell_summed_rows, turned, write_linear
from etx_exir.ir.constants import Constants
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.ops import VIEW, arguments

__all__ = ["is_affine", "spell_affine"]

aten = torch.ops.aten
decomposed = torch.ops.quantized_decomposed
WITHOUT_GRADIENTS = torch.ops.higher_order.wrap_with_set_grad_enabled
TO_CHANNELS = decomposed.dequantize_per_channel.default
TO_GROUPS = decomposed.dequantize_per_channel_group.default


def is_affine(program: ExportedProgram) -> bool:
    """Tell whether `program` has operators that `spell_affine` may replace."""
    return any(
        called(node) == DEQUANTIZE or has_summed_rows(node) or _integers(node)
        for node in _nodes(program)
    )


def spell_affine(program: ExportedProgram) -> None:
    """Put others in the places of such operators."""
    for module in graph_modules(program.graph_module):
        for node in module.graph.find_nodes(op="call_function", target=WITHOUT_GRADIENTS):
            _inline(node, module)
    constants = Constants(program)
    for node in list(_nodes(program)):
        if called(node) == DEQUANTIZE and not _spell_rows(node):
            _spell_weight(node, constants)
        elif node.target is aten.mul.Tensor and not spell_summed_rows(node):
            _spell_product(node)


def _inline(node: Node, module: GraphModule) -> None:
    """Put the graph that ``node`` runs with or without gradients in its place."""
    _, body, *operands = node.args
    assert isinstance(body, Node)
    inner = getattr(module, str(body.target)).graph
    known = dict(zip(inner.find_nodes(op="placeholder"), operands, strict=True))
    with node.graph.inserting_before(node):
        results: Any = node.graph.graph_copy(inner, known)
    for user in list(node.users):
        user.replace_all_uses_with(results[user.args[1]])
        node.graph.erase_node(user)
    node.graph.erase_node(node)


def _nodes(program: ExportedProgram) -> Iterator[Node]:
    for module in graph_modules(program.graph_module):
        yield from module.graph.nodes


def _spell_weight(node: Node, constants: Constants) -> None:
    """Write what dequantizes stored int8, if a channel or a group of it has one scale."""
    given = arguments(node)
    weight, scale, zero = given["input"], given["scale"], given["zero_point"]
    shape, block = tuple(weight.meta["val"].shape), tuple(given["block_size"])
    is_static = all(isinstance(size, int) for size in shape)
    if called(weight) == QUANTIZE or not is_static:
        return
    if given["input_dtype"] is not torch.int8 or block[:1] != (1,):
        return
    has_points = zero is not None and not _is_zero(zero, constants)
    if has_points and zero.meta["val"].is_floating_point():
        return
    limits, dtype = (*bounds(given), torch.int8), given["output_dtype"]
    call: tuple[Any, tuple[Any, ...], dict[str, Any]]
    if block[1:] == shape[1:]:
        sizes, call = [shape[0]], (TO_CHANNELS, (0, *limits), {"out_dtype": dtype})
    elif len(shape) == 2 and shape[1] % block[1] == 0:
        sizes = [shape[0], shape[1] // block[1]]
        call = (TO_GROUPS, (*limits, block[1], dtype), {})
    else:
        return
    with node.graph.inserting_before(node):
        parameters = [_shaped(scale, sizes), None]
        if has_points:
            wide = node.graph.call_function(aten.to.dtype, (_shaped(zero, sizes), torch.int64))
            parameters[1] = wide
    target, args, kwargs = call
    _become(node, target, (weight, *parameters, *args), kwargs)


def _is_zero(node: Node, constants: Constants) -> bool:
    """Tell whether `node` is a tensor of zeros: a constant, or a part of a quantized weight."""
    if called(node) == "export.access_subclass_inner_tensor.default":
        whole, name = node.args
        found = getattr(constants.get(whole), str(name), None)
    else:
        found = constants.get(node)
    return isinstance(found, Tensor) and not bool(found.any())


def _shaped(node: Node, sizes: list[int]) -> Node:
    if list(node.meta["val"].shape) == sizes:
        return node
    return node.graph.call_function(VIEW, (node, sizes))


def _spell_rows(node: Node) -> bool:
    """Write what is rounded to int8 with the range of each of its rows."""
    after = arguments(node)
    quantize: Any = after["input"]
    rows = rounded_rows(quantize)
    if rows is None or rows.is_symmetric or not is_by_row(after, rows.x, after["input_dtype"]):
        return False
    x, choose, scale, zero = rows.x, rows.choose, rows.scale, rows.zero
    if (scale, zero) != (after["scale"], after["zero_point"]):
        return False
    if {*scale.users, *zero.users} != {quantize, node} or {*choose.users} != {scale, zero}:
        return False
    how = (scale, zero, *INT8, torch.int8)
    _become(choose, decomposed.choose_qparams_per_token_asymmetric.default, (x, torch.int8))
    _become(quantize, decomposed.quantize_per_token.default, (x, *how))
    to_float = (quantize, *how, after["output_dtype"])
    _become(node, decomposed.dequantize_per_token.default, to_float)
    return True


def _spell_product(node: Node) -> None:
    """Write ``mm(x, float(w.t())) * scales``, which multiplies each column, as a linear layer."""
    product, scale = node.args
    weight = _integers(product)
    value = scale.meta["val"] if isinstance(scale, Node) else None
    if weight is None or value is None or not isinstance(product, Node):
        return
    dtype = product.meta["val"].dtype
    sizes = weight.meta["val"].shape[:1]
    if len(product.users) != 1 or value.dtype is not dtype or value.shape != sizes:
        return
    with node.graph.inserting_before(node):
        args = (weight, scale, None, 0, *INT8, torch.int8)
        real = node.graph.call_function(TO_CHANNELS, args, {"out_dtype": dtype})
    x: Any = product.args[0]
    write_linear(node, x, real, dtype)


def _integers(node: Any) -> Node | None:
    """Return the int8 matrix of which ``node`` multiplies rows by the float form."""
    if called(node) != "aten.mm.default" or called(node.args[1]) != "aten.to.dtype":
        return None
    return turned(node.args[1].args[0])


def _become(node: Node, target: Any, args: tuple[Any, ...], kwargs: Any = None) -> None:
    node.target, node.args, node.kwargs = target, args, kwargs or {}
