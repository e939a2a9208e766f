# SPDX-License-Identifier: BSD-3-Clause
"""How int8 and int4 weights lie in the file, so that a device reads them in place.

The rows of an N x K matrix are taken in blocks of ``ROWS``, its columns in blocks of ``COLUMNS``:
one block is a vector of 512 bits, two of 256, or four of 128, as instructions that multiply and
add four neighbouring bytes read them.
"""

from __future__ import annotations

import torch
from torch import Tensor

ROWS = 16
COLUMNS = 4
NIBBLE_ZERO = 8
"""What is added to an int4 weight to store it as a number from 0 to 15."""


def blocks(size: int, block: int) -> int:
    """Return the number of blocks that hold `size` elements."""
    return -(-size // block)


def pack(weight: Tensor) -> Tensor:
    """Return the int8 matrix `weight` (N, K) as (N / 16, K / 4, 16, 4), rounded up, zeros added."""
    rows, columns = weight.shape
    outer, inner = blocks(rows, ROWS), blocks(columns, COLUMNS)
    padded = weight.new_zeros(outer * ROWS, inner * COLUMNS)
    padded[:rows, :columns] = weight
    return padded.view(outer, ROWS, inner, COLUMNS).transpose(1, 2).contiguous()


def unpack(packed: Tensor, rows: int, columns: int) -> Tensor:
    """Return the matrix (rows, columns) of which `pack` made `packed`."""
    outer, inner, block_rows, block_columns = packed.shape
    flat = packed.transpose(1, 2).reshape(outer * block_rows, inner * block_columns)
    return flat[:rows, :columns]


def pack_int4(weight: Tensor) -> Tensor:
    """Return the matrix `weight` (N, K) of -8..7 as uint8 (N / 16, K / 8, 16, 4), rounded up.

    Of two blocks that follow each other, the first is in the low nibbles.
    """
    rows, columns = weight.shape
    even = blocks(columns, 2 * COLUMNS) * 2 * COLUMNS
    padded = weight.new_zeros(rows, even)
    padded[:, :columns] = weight
    packed = (pack(padded) + NIBBLE_ZERO).to(torch.uint8)
    return packed[:, 0::2] | (packed[:, 1::2] << 4)


def pack_groups(operand: Tensor) -> Tensor:
    """Return scales or sums (groups, N) as (N / 16, groups, 16), rounded up, zeros added."""
    groups, rows = operand.shape
    padded = operand.new_zeros(groups, blocks(rows, ROWS) * ROWS)
    padded[:, :rows] = operand
    return padded.view(groups, -1, ROWS).transpose(0, 1).contiguous()


def unpack_groups(packed: Tensor, rows: int) -> Tensor:
    """Return the scales or sums (groups, rows) of which `pack_groups` made `packed`."""
    return packed.transpose(0, 1).flatten(1)[:, :rows]


def unpack_int4(packed: Tensor, rows: int, columns: int) -> Tensor:
    """Return the int8 matrix (rows, columns) of which `pack_int4` made `packed`."""
    halves = torch.stack((packed & 15, packed >> 4), 2).flatten(1, 2)
    return unpack(halves.to(torch.int8) - NIBBLE_ZERO, rows, columns)
