# SPDX-License-Identifier: BSD-3-Clause
"""A graph for each kind of node: every kind of the format has a case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from etx_backend_xnnpack._generated import xnnpack as fbs
from evaluate import BINARY, UNARY
from graphs import FP16, FP32, INT32, NONE, QINT8, GraphBuilder

Case = Callable[[GraphBuilder], None]
CASES: dict[str, Case] = {}
POSITIVE = ("SquareRoot", "ReciprocalSquareRoot", "Log")


def case(name: str) -> Callable[[Case], Case]:
    def add(build: Case) -> Case:
        CASES[name] = build
        return build

    return add


def unary(kind: str, dtype: fbs.DataType) -> Case:
    def build(g: GraphBuilder) -> None:
        quantization = fbs.PerTensor(scale=0.03, zero_point=3) if dtype == QINT8 else None
        x = g.input(2, 3, 5, dtype=dtype, quantization=quantization)
        y = g.output(2, 3, 5, dtype=dtype, quantization=quantization)
        clamp = (-0.5, 1.0) if kind == "Clamp" else None
        g.node(kind, fbs.Unary(input_id=x, output_id=y), clamp)

    return build


def binary(kind: str, dtype: fbs.DataType) -> Case:
    def build(g: GraphBuilder) -> None:
        def quantization(scale: float, zero_point: int) -> Any:
            is_byte = dtype == QINT8
            return fbs.PerTensor(scale=scale, zero_point=zero_point) if is_byte else None

        a = g.input(2, 3, 4, 5, dtype=dtype, quantization=quantization(0.03, 3))
        b = g.input(3, 1, 5, dtype=dtype, quantization=quantization(0.02, -4))
        y = g.output(2, 3, 4, 5, dtype=dtype, quantization=quantization(0.05, 1))
        g.node(kind, fbs.Binary(input1_id=a, input2_id=b, output_id=y), (-1.5, 2.0))

    return build


for name in sorted(UNARY):
    CASES[f"{name}-fp32"] = unary(name, FP32)
for name in ("Sigmoid", "Tanh", "Abs", "Hardswish", "Negate", "Clamp", "Copy", "Gelu"):
    CASES[f"{name}-fp16"] = unary(name, FP16)
for name in ("Clamp", "Copy"):
    CASES[f"{name}-qint8"] = unary(name, QINT8)
for name in sorted(BINARY):
    CASES[f"{name}-fp32"] = binary(name, FP32)
for name in ("Add", "Multiply", "Maximum", "Subtract"):
    CASES[f"{name}-fp16"] = binary(name, FP16)
for name in ("Add", "Multiply", "Subtract"):
    CASES[f"{name}-qint8"] = binary(name, QINT8)


@case("Softmax")
def softmax(g: GraphBuilder) -> None:
    g.node("Softmax", fbs.Unary(input_id=g.input(3, 7, 9), output_id=g.output(3, 7, 9)))


@case("LeakyRelu")
def leaky_relu(g: GraphBuilder) -> None:
    x, y = g.input(3, 7), g.output(3, 7)
    g.node("LeakyRelu", fbs.LeakyRelu(negative_slope=0.2, input_id=x, output_id=y))


@case("Elu")
def elu(g: GraphBuilder) -> None:
    x, y = g.input(3, 7), g.output(3, 7)
    g.node("Elu", fbs.Elu(alpha=0.7, input_id=x, output_id=y))


@case("Convert-there-and-back")
def convert(g: GraphBuilder) -> None:
    x = g.input(2, 3, 5)
    q = g.value((2, 3, 5), QINT8, fbs.PerTensor(scale=0.03, zero_point=3))
    y = g.output(2, 3, 5)
    g.node("Convert", fbs.Unary(input_id=x, output_id=q))
    g.node("Convert", fbs.Unary(input_id=q, output_id=y))


@case("Convert-fp16")
def convert_half(g: GraphBuilder) -> None:
    g.node("Convert", fbs.Unary(input_id=g.input(2, 5), output_id=g.output(2, 5, dtype=FP16)))


def linear(rows: tuple[int, ...], transposed: bool = False, bias: bool = True) -> Case:
    def build(g: GraphBuilder) -> None:
        w = torch.randn(19, 11) / 4
        x = g.input(*rows, 11)
        w = g.value((11, 19) if transposed else (19, 11), data=w.T if transposed else w)
        b = g.value((19,), data=torch.randn(19)) if bias else NONE
        y = g.output(*rows, 19)
        payload = fbs.FullyConnected(
            input1_id=x, filter_id=w, bias_id=b, output_id=y, flags=int(transposed)
        )
        g.node("FullyConnected", payload, (-1.0, 1.5))

    return build


CASES["FullyConnected"] = linear((5,))
CASES["FullyConnected-3d"] = linear((2, 3))
CASES["FullyConnected-transposed"] = linear((4,), transposed=True, bias=False)


@case("FullyConnected-fp16")
def linear_half(g: GraphBuilder) -> None:
    x, y = g.input(5, 11, dtype=FP16), g.output(5, 19, dtype=FP16)
    w = g.value((19, 11), FP16, data=(torch.randn(19, 11) / 4).half())
    b = g.value((19,), FP16, data=torch.randn(19).half())
    g.node("FullyConnected", fbs.FullyConnected(input1_id=x, filter_id=w, bias_id=b, output_id=y))


@case("FullyConnected-of-two-inputs")
def linear_of_two(g: GraphBuilder) -> None:
    x, w, y = g.input(5, 11), g.input(19, 11), g.output(5, 19)
    payload = fbs.FullyConnected(input1_id=x, filter_id=w, bias_id=NONE, output_id=y)
    g.node("FullyConnected", payload)


def static_linear(per_channel: bool) -> Case:
    def build(g: GraphBuilder) -> None:
        x = g.input(5, 11, dtype=QINT8, quantization=fbs.PerTensor(scale=0.03, zero_point=3))
        numbers = torch.randint(-127, 128, (19, 11), dtype=torch.int8)
        offsets = torch.randint(-900, 900, (19,), dtype=torch.int32)
        if per_channel:
            scales = torch.rand(19) / 50 + 0.001
            w = g.value((19, 11), fbs.DataType.QCINT8, g.per_channel(scales), numbers)
            b = g.value((19,), fbs.DataType.QCINT32, g.per_channel(scales * 0.03), offsets)
        else:
            w = g.value((19, 11), QINT8, fbs.PerTensor(scale=0.01, zero_point=0), numbers)
            bias = fbs.PerTensor(scale=0.01 * 0.03, zero_point=0)
            b = g.value((19,), fbs.DataType.QINT32, bias, offsets)
        y = g.output(5, 19, dtype=QINT8, quantization=fbs.PerTensor(scale=0.05, zero_point=-7))
        payload = fbs.FullyConnected(input1_id=x, filter_id=w, bias_id=b, output_id=y)
        g.node("FullyConnected", payload)

    return build


CASES["FullyConnected-qint8"] = static_linear(per_channel=False)
CASES["FullyConnected-qcint8"] = static_linear(per_channel=True)


def dynamic_linear(rows: int, kind: str, columns: int = 64) -> Case:
    def build(g: GraphBuilder) -> None:
        x = g.input(rows, columns)
        q = g.value((rows, columns), fbs.DataType.QDINT8, fbs.PerRow(num_nonbatch_dims=1))
        outputs = 19
        packed = torch.randint(0, 256, (outputs, (columns + 1) // 2), dtype=torch.uint8)
        if kind == "qbint4":
            scales = (torch.rand(outputs * columns // 32) / 50 + 0.001).bfloat16()
            index = g.constant(scales.view(torch.int16).numpy().tobytes())
            groups = fbs.PerGroup(group_size=32, scale_index=index, num_scales=len(scales))
            w = g.value((outputs, columns), fbs.DataType.QBINT4, groups, packed)
        elif kind == "qcint4":
            channels = g.per_channel(torch.rand(outputs) / 50 + 0.001)
            w = g.value((outputs, columns), fbs.DataType.QCINT4, channels, packed)
        else:
            channels = g.per_channel(torch.rand(outputs) / 500 + 0.001)
            numbers = torch.randint(-127, 128, (outputs, columns), dtype=torch.int8)
            w = g.value((outputs, columns), fbs.DataType.QCINT8, channels, numbers)
        b = g.value((outputs,), data=torch.randn(outputs))
        y = g.output(rows, outputs)
        g.node("Convert", fbs.Unary(input_id=x, output_id=q))
        payload = fbs.FullyConnected(input1_id=q, filter_id=w, bias_id=b, output_id=y)
        g.node("FullyConnected", payload)

    return build


for kind in ("qcint8", "qcint4", "qbint4"):
    for rows in (1, 2, 3, 5, 15, 16, 17, 31):
        CASES[f"FullyConnected-dynamic-{kind}-{rows}"] = dynamic_linear(rows, kind)
CASES["FullyConnected-dynamic-qcint8-odd"] = dynamic_linear(3, "qcint8", columns=37)


def convolution(
    kind: str, x: tuple[int, ...], y: tuple[int, ...], w: tuple[int, ...], **fields: int
) -> Case:
    def build(g: GraphBuilder) -> None:
        a, b = g.input(*x), g.output(*y)
        f = g.value(w, data=torch.randn(w) / 4)
        bias = g.value((y[-1],), data=torch.randn(y[-1]))
        payload = fbs.Convolution(
            subsampling_height=1, subsampling_width=1, dilation_height=1, dilation_width=1, groups=1
        )
        values = {"input1_id": a, "filter_id": f, "bias_id": bias, "output_id": b}
        for field, value in {**values, **fields}.items():
            setattr(payload, field, value)
        g.node(kind, payload, (-2.0, 2.5))

    return build


CASES["Conv2d"] = convolution(
    "Conv2d", (2, 9, 8, 6), (2, 5, 4, 10), (10, 3, 3, 6), kernel_height=3, kernel_width=3,
    padding_top=1, padding_bottom=1, padding_left=1, padding_right=1, subsampling_height=2,
    subsampling_width=2, group_input_channels=6, group_output_channels=10,
)  # fmt: skip
CASES["Conv2d-groups"] = convolution(
    "Conv2d", (1, 7, 7, 6), (1, 3, 5, 4), (4, 3, 2, 3), kernel_height=3, kernel_width=2,
    dilation_height=2, dilation_width=2, groups=2, group_input_channels=3, group_output_channels=2,
)  # fmt: skip
CASES["DepthwiseConv2d"] = convolution(
    "DepthwiseConv2d", (2, 9, 8, 6), (2, 9, 8, 6), (1, 3, 3, 6), kernel_height=3, kernel_width=3,
    padding_top=1, padding_bottom=1, padding_left=1, padding_right=1, groups=6,
    group_input_channels=1, group_output_channels=1,
)  # fmt: skip
CASES["DepthwiseConv2d-multiplied"] = convolution(
    "DepthwiseConv2d", (1, 6, 6, 3), (1, 4, 4, 6), (1, 3, 3, 6), kernel_height=3, kernel_width=3,
    groups=3, group_input_channels=1, group_output_channels=2,
)  # fmt: skip
CASES["ConvTranspose2d"] = convolution(
    "ConvTranspose2d", (1, 4, 5, 6), (1, 8, 10, 8), (8, 3, 3, 6), kernel_height=3, kernel_width=3,
    padding_top=1, padding_bottom=1, padding_left=1, padding_right=1, subsampling_height=2,
    subsampling_width=2, adjustment_height=1, adjustment_width=1, group_input_channels=6,
    group_output_channels=8,
)  # fmt: skip
CASES["ConvTranspose2d-short"] = convolution(
    "ConvTranspose2d", (1, 1, 2, 6), (1, 1, 4, 8), (8, 3, 3, 6), kernel_height=3, kernel_width=3,
    padding_top=1, padding_bottom=1, padding_left=1, padding_right=1, subsampling_height=3,
    subsampling_width=3, group_input_channels=6, group_output_channels=8,
)  # fmt: skip
CASES["ConvTranspose2d-groups"] = convolution(
    "ConvTranspose2d", (1, 4, 4, 6), (1, 5, 5, 8), (8, 2, 2, 3), kernel_height=2, kernel_width=2,
    groups=2, group_input_channels=3, group_output_channels=4,
)  # fmt: skip


def quantized_convolution(depthwise: bool) -> Case:
    def build(g: GraphBuilder) -> None:
        channels, outputs = 8, 8 if depthwise else 12
        x = g.input(1, 6, 7, channels, dtype=QINT8, quantization=fbs.PerTensor(0.03, 3))
        scales = torch.rand(outputs) / 50 + 0.001
        shape = (1, 3, 3, outputs) if depthwise else (outputs, 3, 3, channels)
        numbers = torch.randint(-127, 128, shape, dtype=torch.int8)
        dim = 3 if depthwise else 0
        w = g.value(shape, fbs.DataType.QCINT8, g.per_channel(scales, dim), numbers)
        offsets = torch.randint(-900, 900, (outputs,), dtype=torch.int32)
        b = g.value((outputs,), fbs.DataType.QCINT32, g.per_channel(scales * 0.03), offsets)
        y = g.output(1, 6, 7, outputs, dtype=QINT8, quantization=fbs.PerTensor(0.06, -7))
        payload = fbs.Convolution(
            1, 1, 1, 1, 3, 3, 1, 1, 1, 1,
            group_input_channels=1 if depthwise else channels,
            group_output_channels=1 if depthwise else outputs,
            groups=channels if depthwise else 1,
            input1_id=x, filter_id=w, bias_id=b, output_id=y,
        )  # fmt: skip
        g.node("DepthwiseConv2d" if depthwise else "Conv2d", payload)

    return build


CASES["Conv2d-qcint8"] = quantized_convolution(depthwise=False)
CASES["DepthwiseConv2d-qcint8"] = quantized_convolution(depthwise=True)


@case("Conv2d-dynamic-qcint8")
def dynamic_convolution(g: GraphBuilder) -> None:
    x = g.input(2, 6, 7, 8)
    q = g.value((2, 6, 7, 8), fbs.DataType.QDINT8, fbs.PerRow(num_nonbatch_dims=3))
    numbers = torch.randint(-127, 128, (12, 3, 3, 8), dtype=torch.int8)
    channels = g.per_channel(torch.rand(12) / 500 + 0.001)
    w = g.value((12, 3, 3, 8), fbs.DataType.QCINT8, channels, numbers)
    b, y = g.value((12,), data=torch.randn(12)), g.output(2, 6, 7, 12)
    payload = fbs.Convolution(
        1, 1, 1, 1, 3, 3, 1, 1, 1, 1,
        groups=1, group_input_channels=8, group_output_channels=12,
        input1_id=q, filter_id=w, bias_id=b, output_id=y,
    )  # fmt: skip
    g.node("Convert", fbs.Unary(input_id=x, output_id=q))
    g.node("Conv2d", payload)


@case("AvgPooling2d")
def avg_pool(g: GraphBuilder) -> None:
    x, y = g.input(1, 8, 8, 5), g.output(1, 5, 5, 5)
    payload = fbs.Pooling2d(1, 1, 1, 1, 2, 2, 2, 2, input_id=x, output_id=y, flags=64)
    g.node("AvgPooling2d", payload)


@case("MaxPooling2d")
def max_pool(g: GraphBuilder) -> None:
    x, y = g.input(1, 9, 8, 5), g.output(1, 4, 4, 5)
    payload = fbs.Pooling2d(0, 1, 0, 1, 3, 3, 2, 2, 1, 1, input_id=x, output_id=y, flags=64)
    g.node("MaxPooling2d", payload)


@case("MaxPooling2d-qint8")
def max_pool_bytes(g: GraphBuilder) -> None:
    quantization = fbs.PerTensor(0.03, 3)
    x = g.input(1, 8, 8, 5, dtype=QINT8, quantization=quantization)
    y = g.output(1, 4, 4, 5, dtype=QINT8, quantization=quantization)
    payload = fbs.Pooling2d(0, 0, 0, 0, 2, 2, 2, 2, 1, 1, input_id=x, output_id=y)
    g.node("MaxPooling2d", payload)


@case("ArgMaxPooling2d")
def arg_max_pool(g: GraphBuilder) -> None:
    x, y, i = g.input(1, 6, 6, 5), g.output(1, 3, 3, 5), g.output(1, 3, 3, 5, dtype=INT32)
    payload = fbs.ArgMaxPooling2d(
        0, 0, 0, 0, 2, 2, input_id=x, output_value_id=y, output_index_id=i
    )
    g.node("ArgMaxPooling2d", payload)


def global_pool(flags: int, clamp: tuple[float, float] | None) -> Case:
    def build(g: GraphBuilder) -> None:
        x, y = g.input(2, 4, 3, 5), g.output(*((2, 1, 1, 5) if flags else (2, 5)))
        g.node("GlobalAvgPooling2d", fbs.Unary(input_id=x, output_id=y, flags=flags), clamp)

    return build


CASES["GlobalAvgPooling2d"] = global_pool(64, None)
CASES["GlobalAvgPooling2d-clamped"] = global_pool(64, (-0.1, 0.2))
CASES["GlobalAvgPooling2d-flat"] = global_pool(0, None)


@case("Transpose")
def transpose(g: GraphBuilder) -> None:
    x, y = g.input(2, 3, 4, 5), g.output(2, 5, 3, 4)
    g.node("Transpose", fbs.Transpose(rank=4, perm=[0, 3, 1, 2], input_id=x, output_id=y))


@case("Reshape")
def reshape(g: GraphBuilder) -> None:
    x, y = g.input(2, 3, 4), g.output(4, 6)
    g.node("Reshape", fbs.Reshape(rank=2, new_shape=[0, 6], input_id=x, output_id=y))


def resize(flags: int) -> Case:
    def build(g: GraphBuilder) -> None:
        x, y = g.input(1, 4, 5, 3), g.output(1, 7, 9, 3)
        payload = fbs.ResizeBilinear2d(7, 9, input_id=x, output_id=y, flags=flags)
        g.node("ResizeBilinear2d", payload)

    return build


CASES["ResizeBilinear2d"] = resize(0)
CASES["ResizeBilinear2d-aligned"] = resize(8)


@case("ConstantPad")
def pad(g: GraphBuilder) -> None:
    x, y = g.input(2, 3, 4), g.output(2, 6, 5)
    payload = fbs.ConstantPad([0, 2, 0], [0, 1, 1], 0.5, input_id=x, output_id=y)
    g.node("ConstantPad", payload)


@case("Slice")
def slice_(g: GraphBuilder) -> None:
    x, y = g.input(4, 5, 6), g.output(2, 5, 3)
    payload = fbs.Slice(3, offsets=[1, 0, 3], sizes=[2, 0, 3], input_id=x, output_id=y)
    g.node("Slice", payload)


def concatenate(count: int) -> Case:
    def build(g: GraphBuilder) -> None:
        sizes = [3, 1, 2, 4, 5][:count]
        payload = fbs.Concatenate(axis=1)
        for i, size in enumerate(sizes, 1):
            setattr(payload, f"input{i}_id", g.input(2, size, 3))
        payload.output_id = g.output(2, sum(sizes), 3)
        g.node(f"Concatenate{count}", payload)

    return build


for count in (2, 3, 4, 5):
    CASES[f"Concatenate{count}"] = concatenate(count)


def matmul(a: tuple[int, ...], b: tuple[int, ...], y: tuple[int, ...], flags: int = 0) -> Case:
    def build(g: GraphBuilder) -> None:
        payload = fbs.Binary(
            input1_id=g.input(*a), input2_id=g.input(*b), output_id=g.output(*y), flags=flags
        )
        g.node("BatchMatrixMultiply", payload)

    return build


CASES["BatchMatrixMultiply"] = matmul((2, 3, 5, 7), (2, 3, 7, 4), (2, 3, 5, 4))
CASES["BatchMatrixMultiply-transposed"] = matmul((3, 5, 7), (3, 4, 7), (3, 5, 4), flags=1)
CASES["BatchMatrixMultiply-broadcast"] = matmul((2, 3, 5, 7), (1, 3, 7, 4), (2, 3, 5, 4))
