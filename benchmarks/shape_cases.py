# SPDX-License-Identifier: BSD-3-Clause
"""Draws operators of odd shapes as a torch module, and writes the same one as an ONNX graph."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional as F

OPSET, IR = 21, 10
MOST = 3e8
"""Multiplications of a case, so that none takes long."""


@dataclass
class Drawn:
    """A case. The ONNX node takes the inputs, then `constants`, with `attributes`."""

    name: str
    module: nn.Module
    inputs: tuple[torch.Tensor, ...]
    operator: str
    attributes: dict[str, Any] = field(default_factory=dict)
    constants: Callable[[Any], list[np.ndarray]] = lambda module: []
    magnitude: float = 1.0  # Of what is added up, where the result may be much smaller.

    def onnx(self, module: nn.Module) -> bytes:
        """Return a model of the one node."""
        with torch.no_grad():
            shape = list(module(*self.inputs).shape)
        constants = self.constants(module)
        given = [f"x{i}" for i in range(len(self.inputs))]
        held = [f"c{i}" for i in range(len(constants))]
        node = helper.make_node(self.operator, [*given, *held], ["y"], **self.attributes)
        values = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, list(x.shape))
            for name, x in zip(given, self.inputs, strict=True)
        ]
        made = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
        initial = [numpy_helper.from_array(c, n) for c, n in zip(constants, held, strict=True)]
        graph = helper.make_graph([node], "case", values, [made], initial)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR)
        content: bytes = model.SerializeToString()
        return content


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


def parameters(module: Any) -> list[np.ndarray]:
    """Return weight and bias as onnxruntime takes them."""
    return [p.detach().numpy() for p in (module.weight, module.bias) if p is not None]


def spatial(draw: Random, channels: int, dims: int) -> list[int]:
    """Return sizes of an image, the smaller the more channels there are."""
    most = max(3, min(224, int((4e5 / channels) ** (1 / dims))))
    return [draw.choice([1, 2, 7, 14, 17, 28, 56, 75, 112, 224, draw.randint(1, most)])
            for _ in range(dims)]  # fmt: skip


def batch_of(draw: Random) -> int:
    return draw.choice([1, 1, 1, 2, 8])


def channels_of(draw: Random) -> int:
    return draw.choice([1, 3, 8, 16, 24, 32, 64, 96, 128, 192, 256, 512, draw.randint(1, 300)])


def conv(draw: Random) -> Drawn:
    """Draw a convolution, of images or rows, dense or in groups."""
    while True:
        dims = draw.choice([1, 2, 2, 2])
        cin, cout = channels_of(draw), channels_of(draw)
        shared = [g for g in (1, 1, 2, 4, 8) if cin % g == 0 and cout % g == 0]
        groups = draw.choice(shared)
        kernel = [draw.choice([1, 1, 3, 3, 3, 5, 7, draw.randint(1, 9)])] * dims
        if dims == 2 and draw.random() < 0.2:
            kernel[draw.randrange(2)] = 1
        stride, dilation = draw.choice([1, 1, 2, 3]), draw.choice([1, 1, 1, 2, 6, 18])
        padding = [draw.choice([0, dilation * (k // 2), dilation * (k // 2)]) for k in kernel]
        x = torch.randn(batch_of(draw), cin, *spatial(draw, cin, dims))
        kind = nn.Conv2d if dims == 2 else nn.Conv1d
        module = kind(
            cin, cout, kernel, stride, padding, dilation, groups, bias=draw.random() < 0.7
        )
        if fits(module, x):
            return drawn_conv("Conv", module, x)


def depthwise(draw: Random) -> Drawn:
    """Draw a convolution of each channel by itself."""
    while True:
        channels, multiple = channels_of(draw), draw.choice([1, 1, 1, 2])
        kernel, stride = draw.choice([3, 3, 5, 7, 9]), draw.choice([1, 1, 2])
        dilation = draw.choice([1, 1, 1, 2, 4])
        padding = draw.choice([0, dilation * (kernel // 2)])
        x = torch.randn(batch_of(draw), channels, *spatial(draw, channels, 2))
        module = nn.Conv2d(channels, channels * multiple, kernel, stride, padding, dilation,
                           groups=channels)  # fmt: skip
        if fits(module, x):
            return drawn_conv("Conv", module, x)


def transposed(draw: Random) -> Drawn:
    """Draw a transposed convolution."""
    while True:
        cin, cout = channels_of(draw), channels_of(draw)
        groups = draw.choice([g for g in (1, 1, 2) if cin % g == 0 and cout % g == 0])
        kernel, stride = draw.choice([2, 3, 4, 5]), draw.choice([1, 2, 2, 3])
        x = torch.randn(batch_of(draw), cin, *spatial(draw, cin, 2))
        module = nn.ConvTranspose2d(cin, cout, kernel, stride, draw.choice([0, 1]), groups=groups)
        if fits(module, x):
            return drawn_conv("ConvTranspose", module, x)


def fits(module: Any, x: torch.Tensor) -> bool:
    """Tell whether a convolution has an output, and is not too long."""
    try:
        with torch.no_grad():
            shape = copy.deepcopy(module).to("meta")(x.to("meta")).shape
    except RuntimeError:
        return False
    larger = max(x.numel(), shape.numel())
    inner = module.weight.numel() / module.weight.shape[0 if not module.transposed else 1]
    return min(shape) > 0 and larger < 4e6 and larger * inner < MOST


def drawn_conv(operator: str, module: Any, x: torch.Tensor) -> Drawn:
    """Describe a convolution in ONNX's words."""
    attributes = {
        "kernel_shape": list(module.kernel_size),
        "strides": list(module.stride),
        "dilations": list(module.dilation),
        "pads": [*module.padding, *module.padding],
        "group": module.groups,
    }
    text = (
        f"{operator} {'x'.join(map(str, module.kernel_size))} {module.in_channels}>"
        f"{module.out_channels} of {'x'.join(map(str, x.shape))}"
        f" stride {module.stride[0]} pad {module.padding[0]}"
        f" dilation {module.dilation[0]} groups {module.groups}"
    )
    return Drawn(text, module, (x,), operator, attributes, parameters)


def product(draw: Random) -> Drawn:
    """Draw a linear layer, a product of matrices or of batches of them."""
    sizes = [1, 2, 3, 8, 16, 49, 64, 128, 197, 256, 384, 512, 768, 1000, draw.randint(1, 1500)]
    while True:
        m, k, n = (draw.choice(sizes) for _ in range(3))
        batch = draw.choice([0, 0, 1, 4, 12])
        if m * k * n * max(1, batch) < MOST:
            break
    if not batch:
        module = nn.Linear(k, n)
        return Drawn(f"linear {m}x{k}x{n}", module, (torch.randn(m, k),), "Gemm",
                     {"transB": 1}, parameters)  # fmt: skip
    inputs = torch.randn(batch, m, k), torch.randn(batch, k, n)
    return Drawn(f"bmm {batch}x{m}x{k}x{n}", Call(torch.matmul), inputs, "MatMul")


def pool(draw: Random) -> Drawn:
    """Draw a pool of images."""
    while True:
        channels = channels_of(draw)
        kernel, stride = draw.choice([2, 2, 3, 3, 5, 7]), draw.choice([1, 2, 2, 3])
        padding = draw.choice([0, kernel // 2])
        x = torch.randn(batch_of(draw), channels, *spatial(draw, channels, 2))
        if min(x.shape[2:]) + 2 * padding >= kernel and x.numel() < 2e6:
            break
    attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [padding] * 4}
    text = f"{kernel}x{kernel} of {'x'.join(map(str, x.shape))} stride {stride} pad {padding}"
    if draw.random() < 0.5:
        return Drawn(f"max pool {text}", nn.MaxPool2d(kernel, stride, padding), (x,), "MaxPool",
                     attributes)  # fmt: skip
    module = nn.AvgPool2d(kernel, stride, padding)
    padded = {**attributes, "count_include_pad": 1}
    return Drawn(f"avg pool {text}", module, (x,), "AveragePool", padded)


def shape_of(draw: Random) -> list[int]:
    """Return a shape of one to four dimensions and at most a million numbers."""
    while True:
        sizes = [1, 2, 3, 7, 12, 49, 64, 100, 128, 197, 384, 768, 1000, draw.randint(1, 4000)]
        shape = [draw.choice(sizes) for _ in range(draw.randint(1, 4))]
        if 64 <= np.prod(shape) <= 1_000_000:
            return shape


def norm(draw: Random) -> Drawn:
    """Draw a layer norm or a group norm."""
    if draw.random() < 0.6:
        shape = shape_of(draw)
        module: Any = nn.LayerNorm(shape[-1])
        return Drawn(f"layer norm of {'x'.join(map(str, shape))}", module, (torch.randn(shape),),
                     "LayerNormalization", {"axis": -1, "epsilon": module.eps},
                     parameters)  # fmt: skip
    groups = draw.choice([1, 2, 4, 8, 32])
    channels = groups * draw.choice([1, 2, 4, 8])
    x = torch.randn(batch_of(draw), channels, *spatial(draw, channels * 4, 2))
    module = nn.GroupNorm(groups, channels)
    return Drawn(f"group norm {groups} of {'x'.join(map(str, x.shape))}", module, (x,),
                 "GroupNormalization", {"num_groups": groups, "epsilon": module.eps},
                 parameters)  # fmt: skip


def softmax(draw: Random) -> Drawn:
    """Draw a softmax over any dimension."""
    shape = shape_of(draw)
    axis = draw.choice([len(shape) - 1, draw.randrange(len(shape))])
    module = nn.Softmax(axis) if draw.random() < 0.7 else nn.LogSoftmax(axis)
    operator = "Softmax" if isinstance(module, nn.Softmax) else "LogSoftmax"
    name = f"{operator} {axis} of {'x'.join(map(str, shape))}"
    return Drawn(name, module, (torch.randn(shape),), operator, {"axis": axis})


def reduction(draw: Random) -> Drawn:
    """Draw a sum, mean or maximum over some dimensions."""
    shape = shape_of(draw)
    axes = sorted(draw.sample(range(len(shape)), draw.randint(1, len(shape))))
    kept = draw.random() < 0.5
    word = draw.choice(["Sum", "Mean", "Max"])
    calls = {"Sum": torch.sum, "Mean": torch.mean, "Max": torch.amax}
    name = f"{word.lower()} {axes} of {'x'.join(map(str, shape))}"
    module = Call(lambda x: calls[word](x, axes, keepdim=kept))
    constants = [np.asarray(axes, np.int64)]
    count = float(np.prod([shape[a] for a in axes])) if word == "Sum" else 1.0
    return Drawn(name, module, (torch.randn(shape),), f"Reduce{word}", {"keepdims": int(kept)},
                 lambda module: constants, count**0.5)  # fmt: skip


def activation(draw: Random) -> Drawn:
    """Draw a function of each number."""
    shape = shape_of(draw)
    operator = draw.choice(["Relu", "Sigmoid", "Tanh", "Gelu", "Exp", "Erf", "HardSwish", "Elu"])
    calls = {"Relu": F.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Gelu": F.gelu,
             "Exp": torch.exp, "Erf": torch.erf, "HardSwish": F.hardswish,
             "Elu": F.elu}  # fmt: skip
    name = f"{operator} of {'x'.join(map(str, shape))}"
    return Drawn(name, Call(calls[operator]), (torch.randn(shape),), operator)


def binary(draw: Random) -> Drawn:
    """Draw a sum, product or quotient, with broadcasting."""
    shape = shape_of(draw)
    other = [size if draw.random() < 0.7 else 1 for size in shape][draw.randrange(len(shape)) :]
    operator = draw.choice(["Add", "Mul", "Sub", "Div"])
    calls = {"Add": torch.add, "Mul": torch.mul, "Sub": torch.sub, "Div": torch.div}
    name = f"{operator} of {'x'.join(map(str, shape))} and {'x'.join(map(str, other))}"
    inputs = torch.randn(shape), torch.rand(other) + 0.5
    return Drawn(name, Call(calls[operator]), inputs, operator)


def moved(draw: Random) -> Drawn:
    """Draw a permutation of dimensions."""
    shape = shape_of(draw)
    order = draw.sample(range(len(shape)), len(shape))
    name = f"permute {order} of {'x'.join(map(str, shape))}"
    module = Call(lambda x: x.permute(order).contiguous())
    return Drawn(name, module, (torch.randn(shape),), "Transpose", {"perm": order})


FAMILIES: dict[str, Callable[[Random], Drawn]] = {
    "conv": conv,
    "depthwise": depthwise,
    "transposed": transposed,
    "product": product,
    "pool": pool,
    "norm": norm,
    "softmax": softmax,
    "reduction": reduction,
    "activation": activation,
    "binary": binary,
    "permute": moved,
}
