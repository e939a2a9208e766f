# SPDX-License-Identifier: BSD-3-Clause
"""Print how much of an int8 sum runtimes compute where all numbers are the largest.

A convolution of 3x3 with 16 channels and a linear layer of 64 inputs, whose inputs and weights are
all 1, quantized to 255 and 127: 1.000 is the sum. A processor without a dot product of bytes adds
two products of bytes to a word, which holds 1.01 of them.

usage: exact_sums.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnxruntime
import openvino
import torch
from etx_exir import to_edge
from etx_quant import quantize
from etx_runtime import Runtime
from onnx import TensorProto, helper, numpy_helper
from openvino import opset8
from torch import nn

LAYERS = {"conv": nn.Conv2d(16, 16, 3, bias=False), "linear": nn.Linear(64, 16, bias=False)}
INPUTS = {"conv": np.ones((1, 16, 5, 5), np.float32), "linear": np.ones((4, 64), np.float32)}
Runner = Callable[[str, np.ndarray], np.ndarray]


def etx(name: str, x: np.ndarray) -> np.ndarray:
    """Quantize with the default recipe, from 0 to 1."""
    model = LAYERS[name].eval()
    nn.init.ones_(model.weight)
    inputs = (torch.from_numpy(x),)
    calls = [inputs, (torch.zeros_like(inputs[0]),)]
    program = torch.export.export(quantize(model, calls), inputs)
    buffer = to_edge(program).to_executorch().buffer
    return Runtime.get().load_program(buffer).load_method("forward").execute([x])[0]


def onnx_quantized(name: str, x: np.ndarray) -> np.ndarray:
    """Run what dequantizes and quantizes around a layer, as quantized models do."""
    weight = np.full(LAYERS[name].weight.shape, 127, np.int8)
    weight = weight if name == "conv" else weight.T.copy()
    scales = {"s": 1 / 255, "sw": 1 / 127, "sy": LAYERS[name].weight[0].numel() / 255}
    numbers = [numpy_helper.from_array(np.float32(v), k) for k, v in scales.items()]
    numbers += [numpy_helper.from_array(np.uint8(0), "z"), numpy_helper.from_array(weight, "w")]
    numbers += [numpy_helper.from_array(np.int8(0), "zw")]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wf"]),
        helper.make_node("Conv" if name == "conv" else "MatMul", ["xf", "wf"], ["f"]),
        helper.make_node("QuantizeLinear", ["f", "sy", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sy", "z"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in _ends(name, x)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], numbers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=9)
    provider = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=provider)
    return session.run(None, {"x": x})[0]


def _ends(name: str, x: np.ndarray) -> Iterator[tuple[str, list[int]]]:
    yield "x", list(x.shape)
    yield "y", [1, 16, 3, 3] if name == "conv" else [4, 16]


def openvino_quantized(name: str, x: np.ndarray) -> np.ndarray:
    """Run a layer of an int8 weight behind a FakeQuantize."""
    given = opset8.parameter(list(x.shape), np.float32)
    low, high = np.float32(0), np.float32(1)
    quantized = opset8.fake_quantize(given, low, high, low, high, 256)
    weight = opset8.constant(np.full(LAYERS[name].weight.shape, 127, np.int8))
    scale = np.full((16,) + (1,) * (len(weight.shape) - 1), 1 / 127, np.float32)
    weight = opset8.multiply(opset8.convert(weight, "f32"), scale)
    if name == "conv":
        layer = opset8.convolution(quantized, weight, [1, 1], [0, 0], [0, 0], [1, 1])
    else:
        layer = opset8.matmul(quantized, weight, False, True)
    model = openvino.Core().compile_model(openvino.Model([layer], [given]), "CPU")
    return model(x)[0]


def main() -> None:
    """Print a row for each runtime."""
    runners: dict[str, Runner] = {
        "ETX": etx,
        "onnxruntime": onnx_quantized,
        "OpenVINO": openvino_quantized,
    }
    for title, run in runners.items():
        shares = (
            f"{name} {run(name, x).max() / LAYERS[name].weight[0].numel():.3f}"
            for name, x in INPUTS.items()
        )
        print(f"{title:12}", *shares)


if __name__ == "__main__":
    main()
