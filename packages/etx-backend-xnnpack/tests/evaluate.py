# SPDX-License-Identifier: BSD-3-Clause
"""What a blob's graph computes, node by node in PyTorch: a reference for the delegate.

Quantized values are kept as the numbers they stand for: each result is rounded to its steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from etx_backend_xnnpack import read_blob
from etx_backend_xnnpack._generated import xnnpack as fbs
from etx_schema import NamedBlob

FLOATS = {fbs.DataType.FP32: torch.float32, fbs.DataType.FP16: torch.float16}
BYTES = {fbs.DataType.QINT8: (torch.int8, -128, 127), fbs.DataType.QUINT8: (torch.uint8, 0, 255)}
NONE = 2**32 - 1
UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "Sigmoid": torch.sigmoid,
    "Floor": torch.floor,
    "SquareRoot": torch.sqrt,
    "Ceiling": torch.ceil,
    "Hardswish": F.hardswish,
    "Negate": torch.neg,
    "Square": torch.square,
    "Abs": torch.abs,
    "ReciprocalSquareRoot": torch.rsqrt,
    "Log": torch.log,
    "Gelu": F.gelu,
    "Tanh": torch.tanh,
    "Exp": torch.exp,
    "Sin": torch.sin,
    "Cos": torch.cos,
    "Copy": torch.clone,
    "Convert": torch.clone,
    "Clamp": torch.clone,
}
BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "Add": torch.add,
    "Subtract": torch.sub,
    "Multiply": torch.mul,
    "Div": torch.div,
    "Minimum": torch.minimum,
    "Maximum": torch.maximum,
    "PReLU": lambda x, slope: torch.where(x < 0, x * slope, x),
}


class Evaluation:
    """The values of one call, by id."""

    def __init__(self, data: bytes, named_data: Mapping[str, NamedBlob]) -> None:
        self.blob = read_blob(data)
        self.named_data = named_data
        self.tensors: dict[int, fbs.TensorValue] = {}
        self.quantizations: dict[int, Any] = {}
        self.values: dict[int, torch.Tensor] = {}
        for entry in self.blob.graph.values:
            value = entry.tensor
            tensor = value.tensor if isinstance(value, fbs.QuantizedTensorValue) else value
            self.tensors[tensor.id] = tensor
            if isinstance(value, fbs.QuantizedTensorValue):
                self.quantizations[tensor.id] = value.quantization
            if tensor.constant_index:
                self.values[tensor.id] = self.constant(tensor)

    def bytes_of(self, index: int) -> bytearray:
        graph = self.blob.graph
        if index >= len(graph.constant_data):
            return bytearray(graph.inline_constants[index].data)
        place = graph.constant_data[index]
        if place.named_key is not None:
            return bytearray(self.named_data[place.named_key].data)
        return bytearray(self.blob.constant_data[place.offset : place.offset + place.size])

    def scales(self, quantization: Any, dtype: torch.dtype) -> torch.Tensor:
        if quantization.scale_index:
            data = self.bytes_of(quantization.scale_index)
            return torch.frombuffer(data, dtype=dtype)[: quantization.num_scales].float()
        return torch.tensor(quantization.scale)

    def constant(self, tensor: fbs.TensorValue) -> torch.Tensor:
        data, sizes = self.bytes_of(tensor.constant_index), tensor.sizes
        quantization = self.quantizations.get(tensor.id)
        count = math.prod(sizes)
        if tensor.dtype in FLOATS:
            return torch.frombuffer(data, dtype=FLOATS[tensor.dtype])[:count].reshape(sizes)
        if tensor.dtype in (fbs.DataType.QCINT4, fbs.DataType.QBINT4):
            pairs = torch.frombuffer(data, dtype=torch.uint8).reshape(sizes[0], -1)
            halves = torch.stack([pairs & 15, pairs >> 4], -1).reshape(sizes[0], -1)
            numbers = halves[:, : sizes[1]].float() - 8
        else:
            wide = tensor.dtype in (fbs.DataType.QINT32, fbs.DataType.QCINT32)
            dtype = torch.int32 if wide else torch.int8
            numbers = torch.frombuffer(data, dtype=dtype)[:count].reshape(sizes).double()
        if isinstance(quantization, fbs.PerGroup):
            groups = self.scales(quantization, torch.bfloat16).reshape(sizes[0], -1)
            return numbers * groups.repeat_interleave(quantization.group_size, 1)
        if isinstance(quantization, fbs.PerTensor):
            return (numbers * quantization.scale).float()
        shape = [1] * len(sizes)
        shape[quantization.channel_dim] = -1
        return (numbers * self.scales(quantization, torch.float32).reshape(shape)).float()

    def stored(self, index: int, value: torch.Tensor) -> torch.Tensor:
        """Round a result to what its value can hold."""
        tensor, quantization = self.tensors[index], self.quantizations.get(index)
        if tensor.dtype in FLOATS:
            return value.to(FLOATS[tensor.dtype])
        if tensor.dtype in BYTES:
            _, lowest, highest = BYTES[tensor.dtype]
            zero, scale = quantization.zero_point, quantization.scale
            return (torch.round(value / scale + zero).clamp(lowest, highest) - zero) * scale
        if tensor.dtype == fbs.DataType.QDINT8:
            dims = tuple(range(value.dim() - quantization.num_nonbatch_dims, value.dim()))
            low, high = value.amin(dims, True).clamp(max=0), value.amax(dims, True).clamp(min=0)
            scale = torch.where(high > low, (high - low) / 255, 1.0)
            zero = torch.round(-128 - low / scale).clamp(-128, 127)
            return (torch.round(value / scale + zero).clamp(-128, 127) - zero) * scale
        return value

    def run(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        graph = self.blob.graph
        for index in graph.input_ids:
            tensor = self.tensors[index]
            given = inputs[tensor.external_id]
            if tensor.dtype in BYTES:
                quantization = self.quantizations[index]
                given = (given.float() - quantization.zero_point) * quantization.scale
            self.values[index] = given
            if tensor.run_time_dtype:
                self.quantizations[index] = fbs.PerRow(num_nonbatch_dims=1)
                tensor.dtype = fbs.DataType.QDINT8
                self.values[index] = self.stored(index, given)
        for node in graph.nodes:
            self.step(node)
        return [self.result(index) for index in graph.output_ids]

    def result(self, index: int) -> torch.Tensor:
        tensor, value = self.tensors[index], self.values[index]
        if tensor.dtype in BYTES:
            quantization = self.quantizations[index]
            steps = torch.round(value / quantization.scale) + quantization.zero_point
            return steps.to(BYTES[tensor.dtype][0])
        return value

    def step(self, node: fbs.Node) -> None:
        name, payload = node.operator_type.name, node.operator
        if name == "ArgMaxPooling2d":
            value, place = self.arg_max_pool(payload)
            self.values[payload.output_value_id] = value
            self.values[payload.output_index_id] = place
            return
        inputs = [
            self.values[getattr(payload, f.name)]
            for f in payload.FIELDS
            if f.name.endswith("_id")
            and not f.name.startswith("output")
            and getattr(payload, f.name) != NONE
        ]
        dtype = inputs[0].dtype
        value = self.compute(name, payload, [each.float() for each in inputs]).to(dtype)
        if node.output_range is not None:
            value = value.clamp(node.output_range.lowest, node.output_range.highest)
        self.values[payload.output_id] = self.stored(payload.output_id, value)

    def compute(self, name: str, payload: Any, inputs: list[torch.Tensor]) -> torch.Tensor:
        if name in UNARY:
            return UNARY[name](inputs[0])
        if name in BINARY:
            return BINARY[name](inputs[0], inputs[1])
        if name.startswith("Concatenate"):
            return torch.cat(inputs[: int(name[-1])], payload.axis)
        return getattr(self, SPECIAL[name])(payload, *inputs)

    def softmax(self, _: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)

    def leaky_relu(self, payload: fbs.LeakyRelu, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(x, payload.negative_slope)

    def elu(self, payload: fbs.Elu, x: torch.Tensor) -> torch.Tensor:
        return F.elu(x, payload.alpha)

    def linear(self, payload: fbs.FullyConnected, x: torch.Tensor, *rest: torch.Tensor) -> Any:
        return F.linear(x, rest[0].T if payload.flags & 1 else rest[0], *rest[1:])

    def matmul(self, payload: fbs.Binary, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ (b.transpose(-1, -2) if payload.flags & 1 else b)

    def conv(self, payload: fbs.Convolution, x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        return self.convolve(payload, x, rest[0].permute(0, 3, 1, 2), rest[1:])

    def depthwise(self, payload: fbs.Convolution, x: torch.Tensor, *rest: torch.Tensor) -> Any:
        return self.convolve(payload, x, rest[0].permute(3, 0, 1, 2), rest[1:])

    def convolve(self, p: fbs.Convolution, x: torch.Tensor, filter_: Any, rest: Any) -> Any:
        padded = F.pad(
            x.permute(0, 3, 1, 2),
            (p.padding_left, p.padding_right, p.padding_top, p.padding_bottom),
        )
        stride = (p.subsampling_height, p.subsampling_width)
        dilation = (p.dilation_height, p.dilation_width)
        bias = rest[0].flatten() if rest else None
        out = F.conv2d(padded, filter_, bias, stride, 0, dilation, p.groups)
        return out.permute(0, 2, 3, 1)

    def conv_transpose(self, payload: fbs.Convolution, x: torch.Tensor, *rest: Any) -> torch.Tensor:
        p = payload
        outputs, height, width, inputs = rest[0].shape
        per_group = outputs // p.groups
        filter_ = rest[0].reshape(p.groups, per_group, height, width, inputs)
        filter_ = filter_.permute(0, 4, 1, 2, 3).reshape(-1, per_group, height, width)
        out = F.conv_transpose2d(
            x.permute(0, 3, 1, 2),
            filter_,
            rest[1] if len(rest) > 1 else None,
            (p.subsampling_height, p.subsampling_width),
            (p.padding_top, p.padding_left),
            (p.adjustment_height, p.adjustment_width),
            p.groups,
            (p.dilation_height, p.dilation_width),
        )
        return out.permute(0, 2, 3, 1)

    def avg_pool(self, payload: fbs.Pooling2d, x: torch.Tensor) -> torch.Tensor:
        p = payload
        out = F.avg_pool2d(
            x.permute(0, 3, 1, 2),
            (p.pooling_height, p.pooling_width),
            (p.stride_height, p.stride_width),
            (p.padding_top, p.padding_left),
            count_include_pad=False,
        )
        return out.permute(0, 2, 3, 1)

    def max_pool(self, payload: fbs.Pooling2d, x: torch.Tensor) -> torch.Tensor:
        p = payload
        padded = F.pad(
            x.permute(0, 3, 1, 2),
            (p.padding_left, p.padding_right, p.padding_top, p.padding_bottom),
            value=-math.inf,
        )
        out = F.max_pool2d(
            padded,
            (p.pooling_height, p.pooling_width),
            (p.stride_height, p.stride_width),
            0,
            (p.dilation_height, p.dilation_width),
        )
        return out.permute(0, 2, 3, 1)

    def arg_max_pool(self, p: fbs.ArgMaxPooling2d) -> tuple[torch.Tensor, torch.Tensor]:
        """The place is that in its window, column by column, as XNNPACK counts."""
        x = self.values[p.input_id].permute(0, 3, 1, 2)
        windows = x.unfold(2, p.pooling_height, p.pooling_height)
        windows = windows.unfold(3, p.pooling_width, p.pooling_width)
        windows = windows.transpose(-1, -2).flatten(-2)
        value, place = windows.max(-1)
        return value.permute(0, 2, 3, 1), place.permute(0, 2, 3, 1)

    def global_pool(self, payload: fbs.Unary, x: torch.Tensor) -> torch.Tensor:
        return x.mean((1, 2), keepdim=bool(payload.flags & 64))

    def transpose(self, payload: fbs.Transpose, x: torch.Tensor) -> torch.Tensor:
        return x.permute(payload.perm)

    def reshape(self, payload: fbs.Reshape, x: torch.Tensor) -> torch.Tensor:
        return x.reshape([size or -1 for size in payload.new_shape])

    def resize(self, payload: fbs.ResizeBilinear2d, x: torch.Tensor) -> torch.Tensor:
        out = F.interpolate(
            x.permute(0, 3, 1, 2),
            (payload.new_height, payload.new_width),
            mode="bilinear",
            align_corners=bool(payload.flags & 8),
        )
        return out.permute(0, 2, 3, 1)

    def pad(self, payload: fbs.ConstantPad, x: torch.Tensor) -> torch.Tensor:
        pairs = zip(payload.pre_paddings, payload.post_paddings, strict=True)
        widths = [width for pair in reversed(list(pairs)) for width in pair]
        return F.pad(x, widths, value=payload.padding_value)

    def slice(self, payload: fbs.Slice, x: torch.Tensor) -> torch.Tensor:
        for dim, (start, size) in enumerate(zip(payload.offsets, payload.sizes, strict=True)):
            x = x.narrow(dim, start, size or x.shape[dim])
        return x


SPECIAL = {
    "Softmax": "softmax",
    "LeakyRelu": "leaky_relu",
    "Elu": "elu",
    "FullyConnected": "linear",
    "BatchMatrixMultiply": "matmul",
    "Conv2d": "conv",
    "DepthwiseConv2d": "depthwise",
    "ConvTranspose2d": "conv_transpose",
    "AvgPooling2d": "avg_pool",
    "MaxPooling2d": "max_pool",
    "GlobalAvgPooling2d": "global_pool",
    "Transpose": "transpose",
    "Reshape": "reshape",
    "ResizeBilinear2d": "resize",
    "ConstantPad": "pad",
    "Slice": "slice",
}
