# SPDX-License-Identifier: BSD-3-Clause
"""Graphs by hand, and programs of one delegate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import etx_schema as es
import torch
from etx_backend_xnnpack import XnnpackBlob, read_blob, write_blob
from etx_backend_xnnpack._generated import xnnpack as fbs

NONE = 2**32 - 1
FP32, FP16, QINT8 = fbs.DataType.FP32, fbs.DataType.FP16, fbs.DataType.QINT8
QUINT8, INT32 = fbs.DataType.QUINT8, fbs.DataType.INT32
SCALARS = {
    FP32: es.ScalarType.FLOAT,
    FP16: es.ScalarType.HALF,
    QINT8: es.ScalarType.CHAR,
    QUINT8: es.ScalarType.BYTE,
    INT32: es.ScalarType.LONG,
}
BYTES = {FP32: 4, FP16: 2, QINT8: 1, QUINT8: 1, INT32: 8}


class GraphBuilder:
    """A graph, value by value and node by node; constants are named data."""

    def __init__(self) -> None:
        self.graph = fbs.Graph(version="0", constant_data=[fbs.ConstantPlace()])
        self.graph.values, self.graph.nodes = [], []
        self.graph.input_ids, self.graph.output_ids = [], []
        self.named: dict[str, es.NamedBlob] = {}

    def constant(self, data: bytes) -> int:
        index = len(self.graph.constant_data)
        self.named[f"c{index}"] = es.NamedBlob(data, alignment=16)
        self.graph.constant_data.append(
            fbs.ConstantPlace(offset=2**64 - 1, size=len(data), named_key=f"c{index}")
        )
        return index

    def value(
        self,
        sizes: Sequence[int],
        dtype: fbs.DataType = FP32,
        quantization: Any = None,
        data: torch.Tensor | None = None,
        flags: int = 0,
    ) -> int:
        index = len(self.graph.values)
        tensor = fbs.TensorValue(
            dtype=dtype, rank=len(sizes), sizes=list(sizes), id=index, flags=flags, external_id=NONE
        )
        if data is not None:
            tensor.constant_index = self.constant(data.contiguous().numpy().tobytes())
        if flags:
            tensor.external_id = self.graph.num_externals
            self.graph.num_externals += 1
            (self.graph.input_ids if flags == 1 else self.graph.output_ids).append(index)
        value: Any = tensor
        if quantization is not None:
            value = fbs.QuantizedTensorValue(tensor=tensor, quantization=quantization)
        self.graph.values.append(fbs.Value(value))
        return index

    def input(self, *sizes: int, dtype: fbs.DataType = FP32, quantization: Any = None) -> int:
        return self.value(sizes, dtype, quantization, flags=1)

    def output(self, *sizes: int, dtype: fbs.DataType = FP32, quantization: Any = None) -> int:
        return self.value(sizes, dtype, quantization, flags=2)

    def per_channel(self, scales: torch.Tensor, dim: int = 0) -> fbs.PerChannel:
        index = self.constant(scales.numpy().tobytes())
        return fbs.PerChannel(channel_dim=dim, scale_index=index, num_scales=len(scales))

    def node(self, kind: str, payload: Any, clamp: tuple[float, float] | None = None) -> None:
        node = fbs.Node(fbs.Operator[kind], payload, debug_handle=len(self.graph.nodes))
        if clamp is not None:
            node.output_range = fbs.OutputRange(lowest=clamp[0], highest=clamp[1])
        self.graph.nodes.append(node)

    def blob(self) -> bytes:
        return write_blob(XnnpackBlob(self.graph))

    def whole_blob(self) -> bytes:
        """Return the blob with its constants inside."""
        return with_constants(self.blob(), self.named)

    def program(self, **options: Any) -> bytes:
        return program(self.blob(), self.named, **options)


def with_constants(blob: bytes, named: Mapping[str, es.NamedBlob]) -> bytes:
    """Return the blob with the constants behind the graph that it finds by name."""
    graph, stored = read_blob(blob).graph, bytearray()
    for place in graph.constant_data[1:]:
        data = bytes(named[place.named_key].data)
        stored += bytes(-len(stored) % 16)
        place.offset, place.size, place.named_key = len(stored), len(data), None
        stored += data
    return write_blob(XnnpackBlob(graph, bytes(stored)))


def program(
    blob: bytes, named: Mapping[str, es.NamedBlob], specs: Mapping[str, bytes] | None = None
) -> bytes:
    """Return a program whose one method is this delegate; sizes are bounds."""
    graph = read_blob(blob).graph
    plan = es.ExecutionPlan(name="forward", non_const_buffer_sizes=[0, 0])
    plan.values, plan.operators, plan.inputs, plan.outputs = [], [], [], []
    stored = [value.tensor for value in graph.values]
    tensors = [t.tensor if isinstance(t, fbs.QuantizedTensorValue) else t for t in stored]
    externals = sorted((t for t in tensors if t.flags), key=lambda t: t.external_id)
    for index, value in enumerate(externals):
        offset = (plan.non_const_buffer_sizes[1] + 63) // 64 * 64
        plan.non_const_buffer_sizes[1] = offset + math.prod(value.sizes) * BYTES[value.dtype]
        tensor = es.Tensor(
            scalar_type=SCALARS[value.dtype],
            sizes=value.sizes,
            dim_order=list(range(value.rank)),
            shape_dynamism=es.TensorShapeDynamism.DYNAMIC_BOUND,
            allocation_info=es.AllocationDetails(memory_id=1, memory_offset_low=offset),
        )
        plan.values.append(es.EValue(val=tensor))
        (plan.inputs if value.flags == 1 else plan.outputs).append(index)
    call = es.DelegateCall(delegate_index=0, args=list(range(len(externals))))
    plan.chains = [es.Chain(inputs=[], outputs=[], instructions=[es.Instruction(call)])]
    reference = es.BackendDelegateDataReference(location=es.DataLocation.SEGMENT, index=0)
    compile_specs = [es.CompileSpec(key=k, value=v) for k, v in (specs or {}).items()]
    plan.delegates = [
        es.BackendDelegate(id="XnnpackBackend", processed=reference, compile_specs=compile_specs)
    ]
    pte = es.PteFile(es.Program(version=0, execution_plan=[plan]), delegates=[blob])
    pte.named_data = dict(named)
    return es.serialize_pte(pte)
