# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.ir.packed_weights import (
    pack,
    pack_groups,
    pack_int4,
    unpack,
    unpack_groups,
    unpack_int4,
)
from hypothesis import given
from hypothesis import strategies as st

sizes = st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**16))


def weight(low: int, high: int, rows: int, columns: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high + 1, (rows, columns), generator=generator, dtype=torch.int8)


@given(sizes)
def test_unpack_undoes_pack(size):
    matrix = weight(-128, 127, *size)
    packed = pack(matrix)
    assert packed.shape[2:] == (16, 4)
    assert torch.equal(unpack(packed, *matrix.shape), matrix)
    assert packed.long().sum() == matrix.long().sum()  # what is added is zero


@given(sizes)
def test_unpack_undoes_pack_of_nibbles(size):
    matrix = weight(-8, 7, *size)
    packed = pack_int4(matrix)
    assert packed.numel() <= -(-size[0] // 16) * 16 * -(-size[1] // 8) * 4
    assert torch.equal(unpack_int4(packed, *matrix.shape), matrix)


@given(sizes)
def test_unpack_undoes_pack_of_groups(size):
    scales = weight(-128, 127, *size).float()
    packed = pack_groups(scales)
    assert packed.shape == (-(-size[1] // 16), size[0], 16)
    assert torch.equal(unpack_groups(packed, size[1]), scales)
    assert packed.abs().sum() == scales.abs().sum()  # what is added is zero


def test_a_block_holds_four_columns_of_sixteen_rows():
    matrix = torch.arange(17 * 5).view(17, 5).to(torch.int8)
    packed = pack(matrix)
    assert packed.shape == (2, 2, 16, 4)
    assert packed[0, 1, 3].tolist() == [19, 0, 0, 0]
    assert packed[1, 0, 0].tolist() == [80, 81, 82, 83]


def test_low_nibbles_hold_the_first_of_two_blocks():
    packed = pack_int4(torch.arange(-8, 8).view(1, 16).to(torch.int8))
    assert packed.shape == (1, 2, 16, 4)
    assert (packed[0, 0, 0] & 15).tolist() == [0, 1, 2, 3]
    assert (packed[0, 1, 0] >> 4).tolist() == [12, 13, 14, 15]
