# SPDX-License-Identifier: BSD-3-Clause
"""Every operator of ``cortex_m::``, drawn: `cortex_m.py EXAMPLES [SEED] [OPERATOR...]`.

ExecuTorch's own definition in Python computes what is expected; our compiler writes a file of the
call, our kernel runs it. Prints how many examples of each operator ran and how many differed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import etx_runtime
import numpy as np
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from torch import Tensor, nn

OPS = torch.ops.cortex_m
assert CortexMPassManager  # registers the operators
NONE = torch.empty(0, dtype=torch.uint8)
NEAR_HALF = 1e-4
"""A share of 256 so near to a half is decided by how torch sums float32."""
BATCH = 40

Draw = Callable[[st.SearchStrategy[Any]], Any]
SIZES = st.integers(1, 9)
ZERO_POINTS = st.integers(-128, 127) | st.sampled_from([-128, 0, 127])
BITS = st.integers(2**30, 2**31 - 1) | st.sampled_from([2**30, 2**31 - 1, 2**30 + 1])
SHIFTS = st.integers(-31, 6) | st.integers(-12, -4)


def integers(draw: Draw, *shape: int) -> Tensor:
    """Draw int8, sometimes all at the edges of the range."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    if draw(st.integers(0, 4)) == 0:
        return torch.randint(0, 2, shape, generator=generator).mul(255).sub(128).to(torch.int8)
    return torch.randint(-128, 128, shape, dtype=torch.int8, generator=generator)


def shape(draw: Draw, least: int = 1, most: int = 4) -> list[int]:
    return draw(st.lists(SIZES, min_size=least, max_size=most))


def bounds(draw: Draw) -> tuple[int, int]:
    low, high = sorted((draw(ZERO_POINTS), draw(ZERO_POINTS)))
    return low, high


def factors(draw: Draw, count: int) -> tuple[Tensor, Tensor]:
    multipliers = [draw(BITS) for _ in range(count)]
    shifts = [draw(SHIFTS) for _ in range(count)]
    return torch.tensor(multipliers, dtype=torch.int32), torch.tensor(shifts, dtype=torch.int32)


def some_bias(draw: Draw, count: int) -> Tensor | None:
    return draw(st.sampled_from([None, integers(draw, count).int() * 1009]))


def pair(draw: Draw, low: int, high: int) -> list[int]:
    return [draw(st.integers(low, high)) for _ in range(2)]


def image(draw: Draw, is_nhwc: bool, sizes: list[int]) -> Tensor:
    """Draw an image (N, H, W, C), or the same memory as (N, C, H, W)."""
    x = integers(draw, *sizes)
    return x if is_nhwc else x.permute(0, 3, 1, 2)


def conv2d(draw: Draw, is_nhwc: bool) -> tuple[Any, ...]:
    """Not dilated: ExecuTorch's definition has no such convolution."""
    depth, groups = pair(draw, 1, 4)
    kernel, dilation = pair(draw, 1, 3), [1, 1]
    outputs = groups * draw(st.integers(1, 4))
    edges = [k + draw(st.integers(0, 5)) for k in kernel]
    sizes = [draw(st.integers(1, 2)), *edges, depth * groups]
    x = image(draw, is_nhwc, sizes)
    weight = integers(draw, outputs, *kernel, depth)
    window = (pair(draw, 1, 3), [draw(st.integers(0, k - 1)) for k in kernel], dilation)
    offsets = (-draw(ZERO_POINTS), draw(ZERO_POINTS))
    numbers = (*offsets, *factors(draw, outputs), *bounds(draw), NONE)
    return x, weight, some_bias(draw, outputs), *window, *numbers


def depthwise_conv2d(draw: Draw, is_nhwc: bool) -> tuple[Any, ...]:
    channels, multiplier = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    kernel, dilation = pair(draw, 1, 3), [1, 1]
    sizes = [draw(st.integers(1, 2)), *(k + draw(st.integers(0, 5)) for k in kernel), channels]
    outputs = channels * multiplier
    weight = integers(draw, 1, *kernel, outputs)
    window = (pair(draw, 1, 3), [draw(st.integers(0, k - 1)) for k in kernel], dilation)
    offsets = (multiplier, -draw(ZERO_POINTS), draw(ZERO_POINTS))
    numbers = (*offsets, *factors(draw, outputs), *bounds(draw), NONE)
    x = image(draw, is_nhwc, sizes)
    return x, weight, some_bias(draw, outputs), *window, *numbers


def transpose_conv2d(draw: Draw, is_nhwc: bool) -> tuple[Any, ...]:
    kernel, stride, dilation = pair(draw, 1, 4), pair(draw, 1, 3), pair(draw, 1, 2)
    inputs, outputs = pair(draw, 1, 5)
    sizes = [draw(st.integers(1, 2)), *pair(draw, 1, 5), inputs]
    padding = [
        draw(st.integers(0, d * (k - 1) // 2)) for k, d in zip(kernel, dilation, strict=True)
    ]
    more = [draw(st.integers(0, max(s, d) - 1)) for s, d in zip(stride, dilation, strict=True)]
    weight = integers(draw, outputs, *kernel, inputs)
    offsets = (-draw(ZERO_POINTS), draw(ZERO_POINTS))
    numbers = (*offsets, *factors(draw, outputs), *bounds(draw), NONE, NONE)
    x = image(draw, is_nhwc, sizes)
    return x, weight, some_bias(draw, outputs), stride, padding, more, dilation, *numbers


def linear(draw: Draw) -> tuple[Any, ...]:
    """One factor: ExecuTorch's definition reads the first of its lists, ours one for each."""
    outputs, depth = draw(SIZES), draw(st.integers(1, 70))
    x, weight = integers(draw, *shape(draw, 0, 2), depth), integers(draw, outputs, depth)
    start = draw(st.sampled_from([(0, 0), (0, 1), (1, 0), (1, 1)]))
    sums = integers(draw, outputs).int() * 509
    given = [sums if flag else None for flag in start]
    count = draw(st.sampled_from([1, outputs]))
    numbers = ([draw(BITS)] * count, [draw(SHIFTS)] * count)
    low, high = bounds(draw)
    offsets = (-draw(ZERO_POINTS), draw(st.sampled_from([0, 0, 7, -128])), draw(ZERO_POINTS))
    return x, weight, *given, *offsets, *numbers, high, low


def batch_matmul(draw: Draw) -> tuple[Any, ...]:
    batches, rows, columns = (draw(SIZES) for _ in range(3))
    depth = draw(st.integers(1, 70))
    a, b = integers(draw, batches, rows, depth), integers(draw, batches, columns, depth)
    points = [draw(ZERO_POINTS) for _ in range(3)]
    return a, -points[0], b, -points[1], points[2], draw(BITS), draw(SHIFTS), NONE


def max_pool2d(draw: Draw, is_nhwc: bool) -> tuple[Any, ...]:
    kernel = pair(draw, 1, 4)
    sizes = [draw(st.integers(1, 2)), *(k + draw(st.integers(0, 6)) for k in kernel), draw(SIZES)]
    window = (kernel, pair(draw, 1, 3), [draw(st.integers(0, k // 2)) for k in kernel], [1, 1])
    point = draw(ZERO_POINTS)
    return image(draw, is_nhwc, sizes), *window, False, point, point, *bounds(draw)


def avg_pool2d(draw: Draw, is_nhwc: bool) -> tuple[Any, ...]:
    kernel = pair(draw, 1, 4)
    sizes = [draw(st.integers(1, 2)), *(k + draw(st.integers(0, 6)) for k in kernel), draw(SIZES)]
    window = (kernel, pair(draw, 1, 3), [draw(st.integers(0, k // 2)) for k in kernel])
    numbers = (draw(st.booleans()), draw(ZERO_POINTS), draw(BITS), draw(st.integers(-12, 2)), NONE)
    return image(draw, is_nhwc, sizes), *window, *numbers


def add(draw: Draw) -> tuple[Any, ...]:
    sizes = shape(draw)
    first, second = ((draw(BITS), draw(st.integers(-8, 0))) for _ in range(2))
    points = [draw(ZERO_POINTS) for _ in range(3)]
    last = (points[2], draw(BITS), draw(st.integers(-31, -14)), *bounds(draw))
    return (
        integers(draw, *sizes),
        points[0],
        *first,
        integers(draw, *sizes),
        points[1],
        *second,
        *last,
    )


def mul(draw: Draw) -> tuple[Any, ...]:
    sizes = shape(draw)
    a, b, zero = (draw(ZERO_POINTS) for _ in range(3))
    return integers(draw, *sizes), a, integers(draw, *sizes), b, zero, draw(BITS), draw(SHIFTS)


def div(draw: Draw) -> tuple[Any, ...]:
    sizes = shape(draw)
    a, b, zero = (draw(ZERO_POINTS) for _ in range(3))
    return integers(draw, *sizes), a, integers(draw, *sizes), b, zero, draw(st.floats(1e-4, 1e4))


def softmax(draw: Draw) -> tuple[Any, ...]:
    sizes = shape(draw)
    numbers = (draw(ZERO_POINTS), -128, draw(BITS), draw(st.integers(16, 29)), -248)
    return integers(draw, *sizes), draw(st.sampled_from([-1, len(sizes) - 1])), *numbers


def transpose(draw: Draw) -> tuple[Any, ...]:
    sizes = shape(draw)
    return integers(draw, *sizes), draw(st.permutations(range(len(sizes))))


def pad(draw: Draw) -> tuple[Any, ...]:
    sizes = shape(draw)
    least = 4 - len(sizes)
    sides = [[0] * least + [draw(st.integers(0, 4)) for _ in sizes] for _ in range(2)]
    return integers(draw, *sizes), *sides, draw(ZERO_POINTS)


def two(draw: Draw) -> tuple[Any, ...]:
    sizes = shape(draw)
    return integers(draw, *sizes), integers(draw, *sizes)


def activation(draw: Draw) -> tuple[Any, ...]:
    return integers(draw, *shape(draw)), integers(draw, 256)


def scales(draw: Draw) -> tuple[float, int, int, int]:
    low, high = bounds(draw)
    return draw(st.floats(1e-6, 1e3)), draw(ZERO_POINTS), low, high


def quantize(draw: Draw) -> tuple[Any, ...]:
    numbers = scales(draw)
    halves = integers(draw, *shape(draw)).float() / 2 * numbers[0]
    return halves, *numbers, torch.int8


def dequantize(draw: Draw) -> tuple[Any, ...]:
    return integers(draw, *shape(draw)), *scales(draw), torch.int8


IMAGES = {
    "quantized_conv2d": conv2d,
    "quantized_depthwise_conv2d": depthwise_conv2d,
    "quantized_transpose_conv2d": transpose_conv2d,
    "quantized_avg_pool2d": avg_pool2d,
    "quantized_max_pool2d": max_pool2d,
}
ROWS: dict[str, Callable[[Draw], tuple[Any, ...]]] = {
    "quantize_per_tensor": quantize,
    "dequantize_per_tensor": dequantize,
    "quantized_add": add,
    "quantized_mul": mul,
    "quantized_div": div,
    "quantized_activation": activation,
    "quantized_linear": linear,
    "quantized_batch_matmul": batch_matmul,
    "minimum": two,
    "maximum": two,
    "softmax": softmax,
    "transpose": transpose,
    "pad": pad,
}
for name, row in IMAGES.items():
    ROWS[name] = lambda draw, row=row: row(draw, False)
    ROWS[f"{name}_nhwc"] = lambda draw, row=row: row(draw, True)


class Calls(nn.Module):
    """Many calls of one operator: the first tensor of each is an input, the others constants."""

    def __init__(self, operator: Any, calls: list[tuple[Any, ...]]) -> None:
        super().__init__()
        self.operator, self.calls = operator, []
        for n, call in enumerate(calls):
            rest = list(call)
            for i, arg in enumerate(call):
                if isinstance(arg, Tensor):
                    rest[i] = f"constant{n}_{i}"
                    self.register_buffer(rest[i], arg)
            self.calls.append(rest)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        results = []
        for x, call in zip(inputs, self.calls, strict=True):
            rest = [getattr(self, arg) if isinstance(arg, str) else arg for arg in call]
            results.append(self.operator(x, *rest))
        return tuple(results)


def run_ours(operator: Any, calls: list[tuple[Any, ...]]) -> list[Tensor]:
    """Write one file of all the calls and run it."""
    inputs = tuple(call[0] for call in calls)
    program = to_edge(torch.export.export(Calls(operator, [call[1:] for call in calls]), inputs))
    model = etx_runtime.load(program.to_executorch(ExecutorchBackendConfig(target=None)).buffer)
    results = model(*[x.numpy() for x in inputs])
    results = [results] if len(calls) == 1 else results
    return [torch.from_numpy(np.array(result)) for result in results]


def is_undecided(call: tuple[Any, ...]) -> Tensor:
    """Return where a share of softmax is next to a half."""
    x, dim, zero_point, _, multiplier, shift, _ = call
    logits = (x.double() - zero_point) * (multiplier * 2.0 ** (shift - 57))
    shares = torch.softmax(logits, dim) * 256
    return ((shares - shares.floor()) - 0.5).abs() < NEAR_HALF


def draw_calls(name: str, examples: int, start: int) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []

    @seed(start)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        calls.append(ROWS[name](data.draw))

    run()
    return calls


def has_definition(operator: Any, call: tuple[Any, ...]) -> bool:
    """Whether ExecuTorch's definition takes the call: no dilated convolution, no ceil mode."""
    try:
        operator(*call)
    except (NotImplementedError, RuntimeError):
        return False
    return True


def sweep(name: str, examples: int, start: int) -> dict[str, Any]:
    """Draw calls of an operator; the first that differs is kept."""
    operator = getattr(OPS, name).default
    calls = draw_calls(name, examples, start)
    drawn, calls = len(calls), [call for call in calls if has_definition(operator, call)]
    found: dict[str, Any] = {"ran": 0, "undefined": drawn - len(calls), "numbers": 0, "differ": 0}
    for first in range(0, len(calls), BATCH):
        some = calls[first : first + BATCH]
        for call, actual in zip(some, run_ours(operator, some), strict=True):
            expected = operator(*call)
            same = actual.shape == expected.shape
            wrong = actual != expected if same else torch.tensor(True)
            if same and name == "softmax":
                wrong &= ~is_undecided(call)
            found["ran"] += 1
            found["numbers"] += expected.numel()
            if wrong.any():
                found["differ"] += 1
                found.setdefault("call", repr(call))
    return found


def main(examples: int, start: int, names: list[str]) -> None:
    found = {}
    for name in names or sorted(ROWS):
        found[name] = sweep(name, examples, start)
        print(name, found[name], file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    given_seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    main(int(sys.argv[1]), given_seed, sys.argv[3:])
