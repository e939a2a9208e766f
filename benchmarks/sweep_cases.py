# SPDX-License-Identifier: BSD-3-Clause
"""Operators of models, in shapes that models have: what `sweep.py` measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

DTYPES = {
    name: getattr(torch, name)
    for name in ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int8")
}
LINEARS = ((1, 768, 3072), (1, 4096, 4096), (8, 768, 3072), (8, 1024, 1000), (32, 512, 512),
           (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (197, 768, 2304))  # fmt: skip
CONVS = (  # image, channels in, out, kernel, stride, groups, dilation
    (224, 3, 32, 3, 2, 1, 1), (224, 3, 64, 7, 2, 1, 1), (224, 3, 768, 16, 16, 1, 1),
    (112, 32, 16, 1, 1, 1, 1), (56, 24, 144, 1, 1, 1, 1), (56, 64, 256, 1, 1, 1, 1),
    (28, 192, 32, 1, 1, 1, 1), (14, 384, 64, 1, 1, 1, 1), (14, 1024, 256, 1, 1, 1, 1),
    (7, 320, 1280, 1, 1, 1, 1), (7, 512, 2048, 1, 1, 1, 1), (56, 64, 64, 3, 1, 1, 1),
    (28, 128, 128, 3, 1, 1, 1), (14, 256, 256, 3, 1, 1, 1), (7, 512, 512, 3, 1, 1, 1),
    (56, 128, 128, 3, 2, 1, 1), (14, 256, 256, 3, 1, 1, 6), (112, 32, 32, 3, 1, 32, 1),
    (56, 144, 144, 3, 2, 144, 1), (28, 240, 240, 5, 1, 240, 1), (14, 384, 384, 3, 1, 384, 1),
    (7, 960, 960, 5, 1, 960, 1),
)  # fmt: skip
IMAGE, TOKENS, WIDE = (1, 64, 56, 56), (1, 128, 768), (1, 12, 128, 128)
POINTWISE: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "add row": lambda x, y: x + y[:, :1, :1],
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (y + 9),
    "maximum": torch.maximum,
    "relu": lambda x, y: x.relu(),
    "clamp": lambda x, y: x.clamp(0, 3),
    "abs": lambda x, y: x.abs(),
    "sigmoid": lambda x, y: x.sigmoid(),
    "tanh": lambda x, y: x.tanh(),
    "exp": lambda x, y: x.exp(),
    "gelu": lambda x, y: F.gelu(x),
    "silu": lambda x, y: F.silu(x),
    "hardswish": lambda x, y: F.hardswish(x),
    "where": lambda x, y: torch.where(x > 0, x, y),
}
ROWS: dict[str, Callable[..., Any]] = {
    "softmax 12x128x128": lambda x: x.softmax(-1),
    "log_softmax 12x128x128": lambda x: x.log_softmax(-1),
    "sum 12x128x128 last": lambda x: x.sum(-1),
    "sum 12x128x128 first": lambda x: x.sum(1),
    "mean 12x128x128": lambda x: x.mean(-1),
    "amax 12x128x128": lambda x: x.amax(-1),
    "argmax 12x128x128": lambda x: x.argmax(-1),
    "cumsum 12x128x128": lambda x: x.cumsum(-1),
    "topk 12x128x128": lambda x: x.topk(5)[0],
    "sort 12x128x128": lambda x: x.sort(-1)[0],
    "transpose 12x128x128": lambda x: x.transpose(1, 2).contiguous(),
    "cat 12x128x128": lambda x: torch.cat([x, x], 1),
    "slice 12x128x128": lambda x: x[..., 3:99].contiguous(),
    "pad 12x128x128": lambda x: F.pad(x, (1, 1, 1, 1)),
    "flip 12x128x128": lambda x: x.flip(-1),
}
IMAGES: dict[str, Callable[..., Any]] = {
    "max_pool 3x3 s2 64x56": lambda x: F.max_pool2d(x, 3, 2, 1),
    "avg_pool 2x2 64x56": lambda x: F.avg_pool2d(x, 2),
    "mean 64x56": lambda x: x.mean((2, 3)),
    "nearest 2x 64x56": lambda x: F.interpolate(x, scale_factor=2.0),
    "bilinear 2x 64x56": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "pixel_shuffle 64x56": lambda x: F.pixel_shuffle(x, 2),
}


class Function(nn.Module):
    """A function, and tensors that it holds."""

    def __init__(self, function: Callable[..., Any], **held: torch.Tensor) -> None:
        super().__init__()
        self.function = function
        for name, value in held.items():
            self.register_buffer(name, value)

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs, *self._buffers.values())


@dataclass
class Case:
    """An operator of one dtype; `flop` are multiplications and additions of a product."""

    name: str
    dtype: str
    module: nn.Module
    inputs: tuple[torch.Tensor, ...]
    flop: int | None = None


def numbers(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return random ones, small where they are integers."""
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(-5, 5, shape).to(dtype)


def cases(dtype_name: str) -> Iterator[Case]:
    """Yield all operators in a dtype; of some, eager has no form in it."""
    dtype = DTYPES[dtype_name]
    torch.manual_seed(0)

    def case(name: str, function: Callable[..., Any], *inputs: Any, **more: Any) -> Case:
        flop = more.pop("flop", None)
        return Case(name, dtype_name, Function(function, **more).eval(), inputs, flop)

    for m, k, n in LINEARS:
        held = {"w": numbers((n, k), dtype), "b": numbers((n,), dtype)}
        x = numbers((m, k), dtype)
        yield case(f"linear {m}x{k}x{n}", F.linear, x, flop=2 * m * k * n, **held)
    a, b = numbers((12, 128, 64), dtype), numbers((12, 64, 128), dtype)
    yield case("bmm 12x128x64x128", torch.bmm, a, b, flop=2 * 12 * 128 * 64 * 128)
    a, b = numbers((256, 256), dtype), numbers((256, 256), dtype)
    yield case("mm 256", torch.mm, a, b, flop=2 * 256**3)
    yield from convolutions(dtype_name, dtype)
    x, y = numbers(IMAGE, dtype), numbers(IMAGE, dtype)
    for name, function in POINTWISE.items():
        yield case(f"{name} 64x56x56", function, x, y)
    for name, function in IMAGES.items():
        yield case(name, function, x)
    wide, tokens = numbers(WIDE, dtype)[0], numbers(TOKENS, dtype)
    for name, function in ROWS.items():
        yield case(name, function, wide)
    pair = {"w": numbers((768,), dtype), "b": numbers((768,), dtype)}
    layer = lambda x, w, b: F.layer_norm(x, (768,), w, b)  # noqa: E731
    yield case("layer_norm 128x768", layer, tokens, **pair)
    group = lambda x: F.group_norm(x, 8)  # noqa: E731
    yield case("group_norm 64x56x56", group, x)
    heads = tuple(numbers((1, 12, 128, 64), dtype) for _ in range(3))
    flop = 4 * 12 * 128 * 128 * 64
    yield case("attention 12x128x64", F.scaled_dot_product_attention, *heads, flop=flop)
    ids = torch.randint(1000, (1, 128))
    yield case("embedding 128 of 1000x768", F.embedding, ids, w=numbers((1000, 768), dtype))


def convolutions(name: str, dtype: torch.dtype) -> Iterator[Case]:
    """Yield convolutions with a bias, padded to the size of their image."""
    for size, cin, cout, kernel, stride, groups, dilation in CONVS:
        pad = 0 if kernel == stride else dilation * (kernel // 2)
        weight = numbers((cout, cin // groups, kernel, kernel), dtype)
        settings = (stride, pad, dilation, groups)
        module = Function(
            lambda x, w, b, s=settings: F.conv2d(x, w, b, *s),
            w=weight,
            b=numbers((cout,), dtype),
        ).eval()
        side = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
        kind = "depthwise" if groups > 1 else "conv"
        extra = (" s2" if stride == 2 else "") + (f" d{dilation}" if dilation > 1 else "")
        label = f"{kind} {kernel}x{kernel}{extra} {cin}>{cout} {size}"
        flop = 2 * side * side * weight.numel()
        yield Case(label, name, module, (numbers((1, cin, size, size), dtype),), flop)
