# SPDX-License-Identifier: BSD-3-Clause
"""One case of each other operator: what `sweep.py --every` measures beside `sweep_cases.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from sweep_cases import DTYPES, IMAGE, WIDE, Case, Function, numbers
from torch.nn import functional as F

UNARY = (
    "acosh", "asinh", "ceil", "cos", "cosh", "erf", "erfc", "expm1", "floor", "log", "log10",
    "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sign", "sin", "sinh", "sqrt",
    "tan", "trunc", "isnan", "isinf", "square", "logical_not", "bitwise_not",
)  # fmt: skip
BELOW_ONE = ("acos", "asin", "atan", "atanh", "logit", "erfinv", "lgamma", "digamma")
BINARY = (
    "atan2", "eq", "lt", "fmod", "remainder", "hypot", "minimum", "logical_and", "pow",
    "floor_divide", "sub", "bitwise_and", "bitwise_left_shift",
)  # fmt: skip
POINTWISE: dict[str, Callable[..., Any]] = {
    "div floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "div trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "fmod 3": lambda x, y: x.fmod(3),
    "remainder 3": lambda x, y: x.remainder(3),
    "pow 2": lambda x, y: x**2,
    "pow 0.5": lambda x, y: y**0.5,
    "elu": lambda x, y: F.elu(x),
    "hardsigmoid": lambda x, y: F.hardsigmoid(x),
    "leaky_relu": lambda x, y: F.leaky_relu(x),
    "softplus": lambda x, y: F.softplus(x),
    "logsigmoid": lambda x, y: F.logsigmoid(x),
    "mish": lambda x, y: F.mish(x),
    "gelu tanh": lambda x, y: F.gelu(x, approximate="tanh"),
    "glu": lambda x, y: F.glu(x, 1),
    "nan_to_num": lambda x, y: torch.nan_to_num(x),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "clamp tensors": lambda x, y: torch.clamp(x, y[:, :1], y[:, 1:2]),
    "addcmul": lambda x, y: torch.addcmul(x, x, y),
    "to float64": lambda x, y: x.to(torch.float64),
    "to int32": lambda x, y: x.to(torch.int32),
    "to bool": lambda x, y: x.to(torch.bool),
}
IMAGES: dict[str, Callable[..., Any]] = {
    "any": lambda x: x.any(),
    "max": lambda x: x.max(),
    "sum": lambda x: x.sum(),
    "prod": lambda x: x.prod(),
    "std": lambda x: x.std(),
    "var of planes": lambda x: x.var((2, 3)),
    "norm of channels": lambda x: x.norm(dim=1),
    "softmax of channels": lambda x: x.softmax(1),
    "argmin of channels": lambda x: x.argmin(1),
    "cumsum of channels": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(-1),
    "repeat": lambda x: x.repeat(1, 2, 1, 1),
    "roll": lambda x: x.roll((3, 5), (2, 3)),
    "flip channels": lambda x: x.flip(1),
    "nhwc": lambda x: x.permute(0, 2, 3, 1).contiguous(),
    "unfold": lambda x: F.unfold(x, 3, padding=1),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 4),
    "pad reflect": lambda x: F.pad(x, (2, 2, 2, 2), mode="reflect"),
    "pad replicate": lambda x: F.pad(x, (2, 2, 2, 2), mode="replicate"),
    "pad circular": lambda x: F.pad(x, (2, 2, 2, 2), mode="circular"),
    "tril": lambda x: x.tril(),
    "slice steps": lambda x: x[:, :, ::2, ::2].contiguous(),
    "stack last": lambda x: torch.stack([x, x], -1),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "avg_pool 3x3": lambda x: F.avg_pool2d(x, 3, 1, 1),
    "max_pool 5x5": lambda x: F.max_pool2d(x, 5, 1, 2),
    "max_pool indices": lambda x: F.max_pool2d(x, 2, 2, return_indices=True),
    "adaptive_avg_pool 5": lambda x: F.adaptive_avg_pool2d(x, 5),
    "bicubic 2x": lambda x: F.interpolate(x, scale_factor=2.0, mode="bicubic"),
    "bilinear antialias": lambda x: F.interpolate(
        x, scale_factor=0.5, mode="bilinear", antialias=True
    ),
    "instance_norm": lambda x: F.instance_norm(x),
    "rms_norm": lambda x: F.rms_norm(x, (56,)),
}
ROWS: dict[str, Callable[..., Any]] = {
    "median": lambda x: x.median(-1)[0],
    "argsort": lambda x: x.argsort(-1),
    "topk 50": lambda x: x.topk(50)[0],
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.flip(0), -1),
    "gather": lambda x: x.gather(-1, places(12, 128, 64)),
    "scatter": lambda x: x.scatter(-1, places(12, 128, 64), x[..., :64]),
    "scatter_add": lambda x: x.scatter_add(-1, places(12, 128, 64), x[..., :64]),
    "scatter_reduce": lambda x: x.scatter_reduce(-1, places(12, 128, 64), x[..., :64], "amax"),
    "index_select": lambda x: x.index_select(2, places(60)),
    "index_put": lambda x: x.index_put((places(9),), x[:9], accumulate=True),
    "masked_fill": lambda x: x.masked_fill(x > 0, 3),
    "masked_select": lambda x: x[x > 0],
    "nonzero": lambda x: x.nonzero(),
    "searchsorted": lambda x: torch.searchsorted(x[0, 0].sort()[0], x),
    "cdist": lambda x: torch.cdist(x[:1], x[1:2]),
}
SIGNALS: dict[str, Callable[..., Any]] = {
    "fft 1024": lambda x: torch.view_as_real(torch.fft.fft(x)),
    "rfft 1024": lambda x: torch.view_as_real(torch.fft.rfft(x)),
    "irfft 1024": lambda x: torch.fft.irfft(torch.view_as_complex(x[:, :1026].view(63, 513, 2))),
    "rfft 400": lambda x: torch.view_as_real(torch.fft.rfft(x[:, :400])),
    "stft 400": lambda x: torch.stft(
        x.view(-1)[:16000], 400, 160, window=window(x), return_complex=True
    ).abs(),
}


def places(*shape: int) -> torch.Tensor:
    """Return indices of 12 rows, the same for each call."""
    count = torch.Size(shape).numel()
    return (torch.arange(count) * 7 % 12).view(shape)


def window(x: torch.Tensor) -> torch.Tensor:
    return torch.ones(400, dtype=x.dtype)


def other_cases(dtype_name: str) -> Iterator[Case]:
    """Yield them in a dtype; of some, eager has no form in it."""
    dtype = DTYPES[dtype_name]
    torch.manual_seed(0)
    x, wide = numbers(IMAGE, dtype), numbers(WIDE, dtype)[0]
    below = (torch.rand(IMAGE) * 0.8 + 0.1).to(dtype)
    positive = (torch.rand(IMAGE) * 8 + 1).to(dtype)

    def case(name: str, function: Callable[..., Any], *inputs: Any) -> Case:
        return Case(name, dtype_name, Function(function).eval(), inputs)

    for name in UNARY:
        yield case(name, getattr(torch, name), positive)
    for name in BELOW_ONE:
        yield case(name, getattr(torch, name), below)
    for name in BINARY:
        yield case(name, getattr(torch, name), x if name != "pow" else positive, positive)
    for name, function in POINTWISE.items():
        yield case(name, function, x, positive)
    for name, function in IMAGES.items():
        yield case(name, function, x)
    for name, function in ROWS.items():
        yield case(name, function, wide)
    for name, function in SIGNALS.items():
        signals = numbers((64, 1024), dtype)
        yield case(name, function, signals if "irfft" not in name else numbers((63, 1026), dtype))
    rows, mean, var = numbers((512, 256), dtype), numbers((256,), dtype), below.flatten()[:256]
    yield case("batch_norm 512x256", lambda x, m, v: F.batch_norm(x, m, v), rows, mean, var)
    grid = (torch.rand(1, 64, 64, 2) * 2 - 1).to(dtype)
    sample = lambda x, at: F.grid_sample(x, at, align_corners=False)  # noqa: E731
    yield case("grid_sample 16x64x64", sample, numbers((1, 16, 64, 64), dtype), grid)
    volume = numbers((1, 16, 16, 28, 28), dtype)
    yield case("max_pool3d", lambda x: F.max_pool3d(x, 2), volume)
    yield case("avg_pool3d", lambda x: F.avg_pool3d(x, 2), volume)
    logits = numbers((1, 32000), dtype)
    yield case("argmax of logits", lambda x: x.argmax(-1), logits)
    yield case("topk of logits", lambda x: x.topk(40)[0], logits)
    yield case("sort of logits", lambda x: x.sort()[0], logits)
