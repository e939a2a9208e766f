# SPDX-License-Identifier: BSD-3-Clause
"""No bytes make the reader fail in any other way than by a ProgramError that says where."""

from __future__ import annotations

import random
import struct
import time

import pytest
from etx_schema import (
    NamedBlob,
    Program,
    ProgramError,
    PtdFile,
    TensorLayout,
    decode,
    read_ptd,
    read_pte,
    serialize_ptd,
    serialize_pte,
    verify,
)
from etx_schema.inspect.describe import describe_pte
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import PROGRAMS

SEEDS = [serialize_pte(build()) for build in PROGRAMS.values()]
PTD = serialize_ptd(PtdFile({"w": NamedBlob(b"12345678", layout=TensorLayout(6, [2], [0]))}))


def survives(content: bytes, read=read_pte) -> bool:
    try:
        pte = read(content)
    except ProgramError:
        return False
    if read is read_pte:
        verify(pte)
    return True


@pytest.mark.parametrize("seed", range(len(SEEDS)), ids=list(PROGRAMS))
def test_every_truncation(seed):
    content = SEEDS[seed]
    for size in range(len(content)):
        assert not survives(content[:size])


@pytest.mark.parametrize("seed", range(len(SEEDS)), ids=list(PROGRAMS))
def test_every_byte_inverted(seed):
    for place in range(len(SEEDS[seed])):
        content = bytearray(SEEDS[seed])
        content[place] ^= 0xFF
        survives(bytes(content))


def test_random_words():
    generator = random.Random(0)
    words = [0, 1, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 4, 1000]
    for _ in range(4000):
        content = bytearray(generator.choice(SEEDS))
        for _ in range(generator.randrange(1, 4)):
            place = generator.randrange(0, len(content) - 4, 2)
            struct.pack_into("<I", content, place, generator.choice(words))
        survives(bytes(content))


def test_exported_files_mutated(exported):
    generator = random.Random(1)
    original = exported.read_bytes()
    for _ in range(100):
        content = bytearray(original)
        for _ in range(3):
            content[generator.randrange(len(content))] = generator.randrange(256)
        if survives(bytes(content)):
            try:
                describe_pte(memoryview(content))
            except ProgramError:
                pytest.fail("read_pte accepts what describe_pte refuses")


def test_ptd_mutated():
    generator = random.Random(2)
    for size in range(len(PTD)):
        assert not survives(PTD[:size], read_ptd)
    for _ in range(3000):
        content = bytearray(PTD)
        struct.pack_into(
            "<H", content, generator.randrange(len(PTD) - 2), generator.choice([0, 4, 65535])
        )
        survives(bytes(content), read_ptd)


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_garbage(content):
    survives(b"\x08\0\0\0ET12" + content)
    survives(content)


def test_offsets_that_meet_do_not_multiply_work():
    count = 200_000
    references = b"".join(struct.pack("<I", 4 * (count - i)) for i in range(count))
    plan_vtable = struct.pack("<HH", 4, 44)
    root_vtable = struct.pack("<HHHH", 8, 8, 0, 4)
    root = struct.pack("<iI", 8, 4)
    head = struct.pack("<I4s", 20, b"ET12") + plan_vtable + root_vtable + root
    tail = struct.pack("<I", count) + references
    plan = struct.pack("<i", len(head) + len(tail) - 8) + bytes(40)
    content = head + tail + plan
    started = time.monotonic()
    with pytest.raises(ProgramError, match="too many offsets lead to the same bytes"):
        decode(Program, content, "ET12")
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "byte 4: not a .pte file"),
        (b"\x08\0\0\0PK\x03\x04", "byte 4: not a .pte file: expected 'ET12', found b'PK"),
        (b"\xff\xff\xff\x7fET12", "byte 2147483647: table Program"),
        (b"\x08\0\0\0ET12\xff\xff\xff\xff", "the vtable of Program"),
    ],
)
def test_errors_say_where(content, message):
    with pytest.raises(ProgramError, match=message):
        read_pte(content)


def test_misaligned_tables_are_refused():
    content = bytearray(SEEDS[0])
    (root,) = struct.unpack_from("<I", content)
    struct.pack_into("<I", content, 0, root + 2)
    with pytest.raises(ProgramError, match="table Program must start at a multiple of 4"):
        read_pte(bytes(content))


def test_segment_out_of_bounds_names_it():
    content = bytearray(SEEDS[1])
    struct.pack_into("<Q", content, 32, 8)
    with pytest.raises(ProgramError, match=r"segment 0 \(the constant segment\) takes 12 bytes"):
        read_pte(bytes(content))


def test_truncated_file_says_so():
    with pytest.raises(ProgramError, match="truncated or damaged"):
        read_pte(SEEDS[1][:-1])
