# SPDX-License-Identifier: BSD-3-Clause
"""Windows over images: TOSA requires that strides divide, ATen drops the remainder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from etx_backend_arm.tosa import DType, Op, fbs

if TYPE_CHECKING:
    from etx_backend_arm.values import Values

__all__ = ["Fit", "fit"]


@dataclass(frozen=True)
class Fit:
    """Padding (top, bottom, left, right, of volumes those of depth first), and what is cut off."""

    pads: list[int]
    cut: list[int]

    def crop(self, values: Values, source: str, name: str) -> str:
        """Return a value, channels last, without the rows and columns that no window reaches."""
        if not any(self.cut):
            return source
        graph = values.graph
        batch, *given, channels = graph.shape(source)
        kept = [size - cut for size, cut in zip(given, self.cut, strict=True)]
        size = [batch, *kept, channels]
        operands = [source, graph.shape_constant([0] * len(size)), graph.shape_constant(size)]
        dtype: DType = graph.dtype(source)
        return graph.operator(Op.SLICE, fbs.SliceAttribute(), operands, name, size, dtype)

    def count(self, sizes: list[int], kernel: list[int], stride: list[int]) -> list[int]:
        """Return how many windows there are down and across an image that is cropped already."""
        pads = (self.pads[0] + self.pads[1], self.pads[2] + self.pads[3])
        return [(sizes[i] + pads[i] - kernel[i]) // stride[i] + 1 for i in range(2)]

    def steps(self, sizes: list[int], kernel: list[int], stride: list[int]) -> list[int]:
        """Return the strides, 1 along an axis of one window."""
        counts = self.count(sizes, kernel, stride)
        return [1 if count == 1 else step for count, step in zip(counts, stride, strict=True)]


def fit(
    sizes: list[int],
    reach: list[int],
    stride: list[int],
    padding: list[int],
    made: Sequence[int] | None = None,
) -> Fit:
    """Pad behind as far as the last window reaches, or take off what no window reaches.

    ``sizes`` are those of an image or a volume, ``reach`` those of a window with its gaps, ``made``
    how many windows there are, by default as many as fit.
    """
    pads, cut = [], []
    for axis in range(len(sizes)):
        room = sizes[axis] + padding[axis]
        count = made[axis] if made else (room + padding[axis] - reach[axis]) // stride[axis] + 1
        rest = (count - 1) * stride[axis] + reach[axis] - room
        pads += [padding[axis], max(rest, 0)]
        cut.append(max(-rest, 0))
    return Fit(pads, cut)
