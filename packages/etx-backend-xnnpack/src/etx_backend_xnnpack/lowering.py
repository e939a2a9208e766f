# SPDX-License-Identifier: BSD-3-Clause
"""Lower a partition to the delegate's blob: needs the extra ``[aot]``."""

from __future__ import annotations

import operator
from typing import Any

from etx_exir import BackendDetails, CompileSpec, PreprocessResult
from etx_exir.ir.dim_order import dim_order_of
from torch.export import ExportedProgram
from torch.fx import Node

from etx_backend_xnnpack._generated.xnnpack import DataType, Operator
from etx_backend_xnnpack.builder import FLOATS, NO_HANDLE, Builder
from etx_backend_xnnpack.kinds import ids_of
from etx_backend_xnnpack.layout import ordered
from etx_backend_xnnpack.nodes import TABLE
from etx_backend_xnnpack.quantized import DEQUANTIZE, QUANTIZE, affine, is_quantization
from etx_backend_xnnpack.values import Values

TAG = "delegate_constant_tag"
"""In the `custom` meta of a constant: the name of the file of tensors it is to be stored in."""


class XnnpackBackend(BackendDetails):
    """Lowers a partition to a graph of XNNPACK's; weights become named data."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Return the blob of `edge_program` and the constants that it names."""
        builder = Builder()
        values = Values(edge_program, builder)
        for node in edge_program.graph.nodes:
            builder.handle = node.meta.get("debug_handle", NO_HANDLE)
            builder.tag = _tag(values, node)
            if node.op == "placeholder":
                _placeholder(values, node)
            elif node.op == "call_function" and node not in values.done:
                _call(values, node)
            elif node.op == "output":
                _outputs(values, node)
        blob, data = builder.finish()
        return PreprocessResult(blob, ids_of(builder.graph), data)


def _tag(values: Values, node: Node) -> str | None:
    """Return the file in which the constants that a node reads are to be stored, by their meta."""
    for argument in node.all_input_nodes:
        if values.constants.get(argument) is not None:
            tag: str | None = argument.meta.get("custom", {}).get(TAG)
        else:
            tag = _tag(values, argument) if is_quantization(argument) else None
        if tag is not None:
            return tag
    return None


def _placeholder(values: Values, node: Node) -> None:
    if values.constants.get(node) is not None:
        return
    sizes, order = values.sizes(node), dim_order_of(node.meta["val"])
    values.builder.dtype = real_dtype(node)
    readers = [affine(user) for user in node.users if user.target == DEQUANTIZE]
    at = readers[0] if readers else None
    number = values.builder.external_input(ordered(sizes, order), at)
    values.define(node, number, order, at)


def real_dtype(node: Node) -> DataType:
    """Return in what real numbers a node's result is, float32 for others."""
    value = node.meta["val"]
    first = value[0] if isinstance(value, (tuple, list)) else value
    return FLOATS.get(first.dtype, DataType.FP32)


def _call(values: Values, node: Node) -> None:
    row = TABLE.get(node.target)
    wide = row is not None and row.wide
    values.builder.dtype = DataType.FP32 if wide else real_dtype(node)
    if node.target == QUANTIZE:
        _quantize(values, node)
    elif node.target == DEQUANTIZE and values.tensor(node) is None:
        source: Any = node.args[0]
        for form in values.forms(source):
            values.define(node, form.id, form.order, form.affine)
    elif is_quantization(node) or node.target is operator.getitem:
        pass  # read where it is used
    else:
        assert row is not None, f"{node} is not in the table"
        row.emit(values, node)


def _quantize(values: Values, node: Node) -> None:
    source: Any = node.args[0]
    order = values.natural(source)
    at = affine(node)
    values.define(node, values.get(source, order, at), order, at)


def _outputs(values: Values, node: Node) -> None:
    """Mark the values that are returned, each of its own."""
    builder = values.builder
    results: Any = node.args[0]
    for result in results:
        form = values.quantized(result) if is_quantization(result) else None
        at = form.affine if form else None
        if result.target == DEQUANTIZE:
            at = None
        order = dim_order_of(result.meta["val"])
        builder.dtype = real_dtype(result)
        builder.handle = result.meta.get("debug_handle", NO_HANDLE)
        number = values.get(result, order, at)
        if not builder.is_internal(number):
            copied = builder.value(ordered(values.sizes(result), order), at)
            number = builder.unary(Operator.Copy, number, copied)
        builder.external_output(number)
