# SPDX-License-Identifier: BSD-3-Clause
"""One program with many `cortex_m::` operators, of sizes that reach each branch of a kernel."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from etx_backend_arm.cortex_m import operators as ops
from torch import nn

NONE = torch.empty(0, dtype=torch.uint8)
Row = tuple[object, tuple[int, ...], tuple[object, ...]]
CONVS = [
    # height, width, depth of a group, groups, outputs of a group, kernel, stride, padding, dilation
    (5, 7, 16, 1, 8, 1, 1, 0, 1),
    (4, 5, 7, 1, 5, 1, 2, 0, 1),
    (6, 5, 3, 1, 9, 3, 1, 1, 1),
    (9, 9, 5, 2, 3, 3, 2, 2, 2),
    (5, 11, 33, 1, 1, 3, 1, 1, 1),
    (12, 6, 1, 1, 6, 5, 1, 2, 1),
]
DEPTHWISE = [
    # height, width, channels, outputs of a channel, kernel, stride, padding, dilation
    (5, 6, 16, 1, 3, 1, 1, 1),
    (7, 5, 13, 1, 3, 2, 1, 1),
    (6, 6, 3, 2, 2, 1, 0, 2),
    (4, 9, 8, 1, 5, 1, 4, 1),
]


def integers(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Return int8 of the whole range."""
    return torch.randint(-128, 128, shape, dtype=torch.int8, generator=generator)


def factors(generator: torch.Generator, count: int, most: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return multipliers, and shifts up to `most`."""
    multipliers = torch.randint(2**30, 2**31 - 1, (count,), generator=generator).int()
    return multipliers, torch.randint(-14, most + 1, (count,), generator=generator).int()


def rows() -> Iterator[Row]:
    """Yield operators, sizes of their inputs, and their other arguments."""
    g = torch.Generator().manual_seed(7)
    for most in (-5, 1):
        for h, w, depth, groups, outputs, kernel, stride, padding, dilation in CONVS:
            channels = outputs * groups
            weight = integers(g, channels, kernel, kernel, depth)
            bias = integers(g, channels).int() * 97
            window = ([stride, 1], [padding, padding], [dilation, 1])
            ends = (*factors(g, channels, most), -120, 127, NONE)
            yield ops.CONV2D, (1, h, w, depth * groups), (weight, bias, *window, 77, -3, *ends)
        for h, w, channels, multiplier, kernel, stride, padding, dilation in DEPTHWISE:
            weight = integers(g, 1, kernel, kernel, channels * multiplier)
            bias = integers(g, channels * multiplier).int() * 31 if multiplier == 1 else None
            window = ([stride, stride], [padding, 0], [dilation, dilation])
            ends = (*factors(g, channels * multiplier, most), -128, 100, NONE)
            rest = (weight, bias, *window, multiplier, -127, 5, *ends)
            yield ops.DEPTHWISE_CONV2D, (1, h, w, channels), rest
    for inputs, outputs in ((40, 6), (7, 3), (128, 9)):
        weight, start = integers(g, outputs, inputs), integers(g, outputs).int() * 61
        multipliers, shifts = (part.tolist() for part in factors(g, outputs, 0))
        for given in ((start, None), (None, start), (None, None)):
            for offset in (0, 3):
                numbers = (-9, offset, 4, multipliers, shifts, 127, -128)
                yield ops.LINEAR, (3, inputs), (weight, *given, *numbers)
    for size in (1, 6, 35):
        pairs = ((2**30 + 5, 0), (2**31 - 9, -1), (1234567890, -17))
        y = integers(g, 2, size)
        yield ops.ADD, (2, size), (3, *pairs[0], y, -5, *pairs[1], 7, *pairs[2], -100, 127)
    for sizes in ((2, 1, 6), (6,), (1, 5, 1)):
        y = integers(g, *sizes)
        ends = (9, 1234567890, -16, -128, 127)
        yield ops.ADD, (2, 5, 6), (3, -(2**30) - 7, 0, y, -5, 2**31 - 9, -1, *ends)
        yield ops.MUL, (2, 5, 6), (3, y, -9, 5, -1518500250, -7)
        yield ops.DIV, (2, 5, 6), (3, y, -9, 5, 7.3)
        yield ops.MINIMUM, (2, 5, 6), (y,)
        yield ops.MAXIMUM, (2, 5, 6), (y,)
    for sizes, order in (((2, 9, 8, 3), [0, 3, 1, 2]), ((2, 5, 6), [2, 0, 1]), ((2, 50), [1, 0])):
        yield ops.TRANSPOSE, sizes, (order,)
    for sizes in ((2, 9, 8, 3), (4, 1, 9, 8), (2, 7, 1, 1)):
        yield ops.PAD, sizes, ([0, 1, 2, 0], [1, 0, 3, 0], -7)
    yield ops.SOFTMAX, (2, 5, 6), (1, 7, -128, 1717986944, 22, -124)
    y, numbers = integers(g, 2, 4, 6), (3, 2**30 + 9, -7, NONE)
    yield ops.BATCH_MATMUL, (2, 5, 6), (5, y, -128, *numbers)
    window = ([2, 1], [1, 0], [1, 0], [1, 1])
    weight, ends = integers(g, 5, 3, 2, 3), (*factors(g, 5, -5), -120, 127, NONE, NONE)
    yield ops.TRANSPOSE_CONV2D, (2, 9, 8, 3), (weight, None, *window, 77, -3, *ends)
    for kernel in ([2, 3], [4, 1]):
        window = (kernel, [2, 1], [kernel[0] // 2, 0])
        yield ops.MAX_POOL2D, (2, 9, 8, 3), (*window, [1, 1], False, 4, 4, -90, 100)
        yield ops.AVG_POOL2D, (2, 9, 8, 3), (*window, False, -7, 1518500250, -3, NONE)
    yield ops.ACTIVATION, (2, 50), (integers(g, 256),)


class Sweep(nn.Module):
    """All rows; an input each of the ones of other sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[object, int, list[object]]] = []
        self.inputs: list[torch.Tensor] = []
        generator = torch.Generator().manual_seed(8)
        places: dict[tuple[int, ...], int] = {}
        for i, (operator, shape, args) in enumerate(rows()):
            if shape not in places:
                places[shape] = len(self.inputs)
                self.inputs.append(integers(generator, *shape))
            names: list[object] = []
            for k, arg in enumerate(args):
                if isinstance(arg, torch.Tensor):
                    self.register_buffer(f"c{i}_{k}", arg)
                names.append(f"c{i}_{k}" if isinstance(arg, torch.Tensor) else arg)
            self.calls.append((operator, places[shape], names))

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return what each row computes."""
        return tuple(
            operator(inputs[place], *(getattr(self, a) if isinstance(a, str) else a for a in args))
            for operator, place, args in self.calls
        )
