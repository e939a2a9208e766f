# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions and pools with random windows are delegated, or stay outside, and are right.

`test_windows.py COUNT SEED` draws as many as one likes.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import etx_runtime
import pytest
import torch
import torch.nn.functional as F
from case import Call
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge_transform_and_lower
from etx_exir.delegation.explain import Outside, outside
from torch import Tensor

Pair = tuple[int, int]
Layer = Callable[[Tensor], Tensor]
COUNT = 40


class Draw(random.Random):
    """Draws layers that PyTorch takes."""

    def pair(self, low: int, high: int) -> Pair:
        """Return a number for each axis of the image, often the same one."""
        first = self.randint(low, high)
        return first, self.choice([first, self.randint(low, high)])

    def below(self, limits: Pair) -> Pair:
        """Return a number up to each of two."""
        return self.randint(0, limits[0]), self.randint(0, limits[1])

    def convolution(self, channels: int) -> tuple[str, Layer]:
        """Return a convolution of some groups, with a padding as large as its window."""
        groups = self.choice([1, 1, channels])
        out = groups * self.choice([1, 2, 5])
        kernel, stride, dilation = self.pair(1, 4), self.pair(1, 4), self.pair(1, 3)
        padding = self.below((kernel[0] * dilation[0], kernel[1] * dilation[1]))
        weight = torch.randn(out, channels // groups, *kernel)
        text = f"conv {tuple(weight.shape)} {stride=} {padding=} {dilation=} {groups=}"
        return text, lambda x: F.conv2d(x, weight, None, stride, padding, dilation, groups)

    def transposed(self, channels: int) -> tuple[str, Layer]:
        """Return a transposed convolution."""
        groups = self.choice([1, 1, channels])
        kernel, stride, dilation = self.pair(1, 4), self.pair(1, 4), self.pair(1, 3)
        padding = self.below((kernel[0] - 1, kernel[1] - 1))
        more = self.below((stride[0] - 1, stride[1] - 1))
        weight = torch.randn(channels, self.choice([1, 2, 5]), *kernel)
        text = (
            f"transposed {tuple(weight.shape)} {stride=} {padding=} {more=} {dilation=} {groups=}"
        )
        return text, lambda x: F.conv_transpose2d(
            x, weight, None, stride, padding, more, groups, dilation
        )

    def max_pool(self, _: int) -> tuple[str, Layer]:
        """Return a max pool."""
        kernel, stride, dilation = self.pair(1, 4), self.pair(1, 4), self.pair(1, 4)
        padding, up = self.below((kernel[0] // 2, kernel[1] // 2)), self.random() < 0.3
        text = f"max pool {kernel=} {stride=} {padding=} {dilation=} {up=}"
        return text, lambda x: F.max_pool2d(x, kernel, stride, padding, dilation, up)

    def avg_pool(self, _: int) -> tuple[str, Layer]:
        """Return an average pool."""
        kernel, stride = self.pair(1, 4), self.pair(1, 4)
        padding, up = self.below((kernel[0] // 2, kernel[1] // 2)), self.random() < 0.3
        counts = self.random() < 0.5
        text = f"avg pool {kernel=} {stride=} {padding=} {up=} {counts=}"
        return text, lambda x: F.avg_pool2d(x, kernel, stride, padding, up, counts)


KINDS = (Draw.convolution, Draw.transposed, Draw.max_pool, Draw.avg_pool)


def run_layer(model: torch.nn.Module, x: Tensor) -> tuple[Tensor, list[Outside]]:
    """Return what the lowered model gives, and the nodes that stayed outside."""
    program = torch.export.export(model, (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner(heavy_only=False)])
    left = outside(edge.exported_program())
    return etx_runtime.load(edge.to_executorch().buffer, outputs="torch")(x), left


def check(draw: Draw) -> str | None:
    """Draw a layer and run it; return what it is, or None where eager refuses it."""
    channels = draw.randint(1, 6)
    x = torch.randn(draw.randint(1, 2), channels, *draw.pair(1, 11))
    text, layer = draw.choice(KINDS)(draw, channels)
    try:
        expected = layer(x)
    except RuntimeError:  # The window does not fit the image.
        return None
    found, _ = run_layer(Call(lambda x: F.relu(layer(x))), x)
    text = f"{text} of {tuple(x.shape)}"
    torch.testing.assert_close(
        found, F.relu(expected), rtol=1e-4, atol=1e-4, msg=lambda why: f"{text}: {why}"
    )
    return text


def run(count: int, seed: int) -> list[str]:
    """Run `count` layers that eager takes; return what is wrong with those that fail."""
    torch.manual_seed(seed)
    draw = Draw(seed)
    findings, done = [], 0
    while done < count:
        try:
            done += check(draw) is not None
        except (AssertionError, etx_runtime.ExecutionError) as error:
            findings.append(f"{type(error).__name__}: {error}")
            done += 1
    return findings


def main(count: int, seed: int) -> None:
    """Run `count` layers; exit with 1 where one fails."""
    findings = run(count, seed)
    for finding in findings:
        print(finding[:600])
    print(f"{count} layers from seed {seed}, {len(findings)} findings")
    sys.exit(bool(findings))


def test_windows_that_miss_a_small_image() -> None:
    x = torch.randn(2, 3, 3, 5)
    model = Call(lambda x: F.max_pool2d(x, 2, 2, 1, 4))
    found, (left,) = run_layer(model, x)
    assert any("a window may miss an image of 3" in why for why in left.reasons.values())
    assert torch.equal(found, model(x))


@pytest.mark.parametrize(
    ("size", "padding"), [((1, 1), 1), ((1, 5), (1, 0)), ((5, 1), (9, 1)), ((2, 2), 3)], ids=str
)
def test_outputs_shorter_than_a_stride(size: Pair, padding: int | Pair) -> None:
    x, weight = torch.randn(2, 3, *size), torch.randn(3, 2, 4, 4)
    model = Call(lambda x: F.relu(F.conv_transpose2d(x, weight, None, 4, padding)))
    found, left = run_layer(model, x)
    assert left == []
    torch.testing.assert_close(found, model(x))


def test_random_windows(request: pytest.FixtureRequest) -> None:
    assert run(COUNT, request.config.getoption("rows_seed")) == []


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
