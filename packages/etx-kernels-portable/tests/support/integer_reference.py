# SPDX-License-Identifier: BSD-3-Clause
"""What the integer operators compute, in exact arithmetic: sums in int64, products in float64.

All tensors are channels-last in their shape; weights are (N, K), of a convolution (N, kernel rows,
kernel columns, channels of a group).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

COLUMNS, DEPTH = 16, 4


def pack(weight: torch.Tensor, groups: int = 1) -> torch.Tensor:
    """Return the packed form of an int8 matrix, one below the other for groups of its rows."""
    parts = [pack_matrix(part, DEPTH) for part in weight.flatten(1).chunk(groups)]
    return torch.cat(parts).contiguous()


def pack_matrix(weight: torch.Tensor, depth: int) -> torch.Tensor:
    n, k = weight.shape
    padded = F.pad(weight, (0, -k % depth, 0, -n % COLUMNS))
    blocks = padded.reshape(padded.shape[0] // COLUMNS, COLUMNS, padded.shape[1] // depth, depth)
    return blocks.transpose(1, 2).contiguous()


def pack_int4(weight: torch.Tensor) -> torch.Tensor:
    """Return the packed form of numbers from -8 to 7: two blocks of depth in the nibbles of one."""
    blocks = pack_matrix(weight, 2 * DEPTH) + 8
    return (blocks[..., :DEPTH] | blocks[..., DEPTH:] << 4).to(torch.uint8).contiguous()


def pack_groups(operand: torch.Tensor) -> torch.Tensor:
    """Return the packed form of scales or sums (groups, N)."""
    padded = F.pad(operand, (0, -operand.shape[1] % COLUMNS))
    return padded.unflatten(1, (-1, COLUMNS)).transpose(0, 1).contiguous()


@dataclass(frozen=True)
class Output:
    """Zero point and bounds of an int8 result."""

    zero_point: int = 0
    low: int = -128
    high: int = 127

    @property
    def args(self) -> tuple[int, int, int]:
        return self.zero_point, self.low, self.high

    def requantize(self, sums: torch.Tensor, scale: torch.Tensor | float) -> torch.Tensor:
        """Return clamp(round(float32(sum) * scale) + zero point)."""
        factor = torch.as_tensor(scale, dtype=torch.float32)
        return self.round(sums.to(torch.float32) * factor)

    def round(self, scaled: torch.Tensor) -> torch.Tensor:
        rounded = scaled.double().round() + self.zero_point
        return rounded.clamp(self.low, self.high).to(torch.int8)


def linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, zero: int
) -> torch.Tensor:
    """Return the exact sums of (x - zero) weight + bias as int64."""
    sums = (x.double() - zero) @ weight.double().T
    assert sums.abs().max() < 2**53 if sums.numel() else True
    return (sums if bias is None else sums + bias).long()


@dataclass(frozen=True)
class Geometry:
    """How a window moves: the lists of a convolution."""

    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (1, 1, 1, 1)
    dilation: tuple[int, int] = (1, 1)
    spacing: tuple[int, int] = (1, 1)

    def lists(self) -> tuple[list[int], ...]:
        return tuple(map(list, (self.kernel, self.stride, self.padding, self.dilation)))

    def spread(self, x: torch.Tensor) -> torch.Tensor:
        """Return x (N, H, W, C) with spacing - 1 zeros between neighbours, and zeros around."""
        n, h, w, c = x.shape
        rows, columns = ((size - 1) * s + 1 for size, s in zip((h, w), self.spacing, strict=True))
        wide = torch.zeros(n, rows, columns, c, dtype=x.dtype)
        wide[:, :: self.spacing[0], :: self.spacing[1]] = x
        top, left, bottom, right = self.padding
        return F.pad(wide, (0, 0, left, right, top, bottom))


def conv(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    zero: int,
    geometry: Geometry,
    groups: int = 1,
) -> torch.Tensor:
    """Return the exact sums of a convolution as int64."""
    spread = geometry.spread(x.double() - zero).permute(0, 3, 1, 2)
    kernel = weight.double().permute(0, 3, 1, 2)
    stride, dilation = geometry.stride, geometry.dilation
    sums = F.conv2d(spread, kernel, None, stride, 0, dilation, groups).permute(0, 2, 3, 1)
    return (sums if bias is None else sums + bias).long()


def windows(x: torch.Tensor, geometry: Geometry, fill: float) -> torch.Tensor:
    """Return the windows of x (N, H, W, C) as (N, OH, OW, C, points)."""
    top, left, bottom, right = geometry.padding
    wide = F.pad(x.double(), (0, 0, left, right, top, bottom), value=fill)
    parts = []
    for i in range(geometry.kernel[0]):
        for j in range(geometry.kernel[1]):
            y, z = i * geometry.dilation[0], j * geometry.dilation[1]
            parts.append(wide[:, y:, z:][:, :: geometry.stride[0], :: geometry.stride[1]])
    rows, columns = parts[-1].shape[1:3]
    return torch.stack([part[:, :rows, :columns] for part in parts], -1)


def between(points: torch.Tensor, size: int) -> torch.Tensor:
    """Return the matrix (n, size) whose product puts points between `size`, in parts of 2048."""
    first, weight = points.double().unbind(1)
    at = first + weight / 2048
    return (1 - (at[:, None] - torch.arange(size)).abs()).clamp(min=0) * 2048


def interpolate(
    x: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, zero: int
) -> torch.Tensor:
    """Return the exact sums (N, rows, columns, C) of an image, in parts of 2^22."""
    down, right = between(rows, x.shape[1]), between(columns, x.shape[2])
    return torch.einsum("yh,nhwc,xw->nyxc", down, x.double() - zero, right).long()


def quantize_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return int8 rows with a scale and a zero point each, as torchao does it by token."""
    low = x.amin(-1, keepdim=True).clamp(max=0)
    high = x.amax(-1, keepdim=True).clamp(min=0)
    scale = ((high - low) / 255.0).clamp(min=torch.finfo(torch.float32).eps)
    zero = (-128 - torch.round(low / scale)).clamp(-128, 127)
    q = (torch.round(x * (1.0 / scale)) + zero).clamp(-128, 127)
    return q, scale, zero
