# SPDX-License-Identifier: BSD-3-Clause
"""What is written is what is read, and equal contents give equal bytes."""

from __future__ import annotations

import math
import struct

import pytest
from etx_schema import (
    BackendDelegateDataReference,
    DataLocation,
    Double,
    EtxError,
    EValue,
    Int,
    IntList,
    KernelCall,
    NamedBlob,
    Program,
    PtdFile,
    PteFile,
    ScalarType,
    String,
    TensorLayout,
    decode,
    decode_size_prefixed,
    encode,
    read_ptd,
    read_pte,
    serialize_ptd,
    serialize_pte,
    write_pte,
)
from etx_schema._generated import bundled_program, etdump, program
from etx_schema.codec import Table
from hypothesis import given
from hypothesis import strategies as st
from programs import PROGRAMS, add, counter, delegated, tensor


def tables(cls: type[Table]) -> st.SearchStrategy:
    return st.builds(cls, **{item.name: values(item) for item in cls.FIELDS})


def values(item) -> st.SearchStrategy:
    if item.kind == "scalar":
        return st.sampled_from(list(item.enum)) if item.enum else scalars(item.type)
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    return {
        "string": lambda: st.none() | text,
        "table": lambda: st.none() | st.deferred(lambda: tables(item.type)),
        "union": lambda: (
            st.none() | st.one_of([st.deferred(lambda t=t: tables(t)) for t in item.type])
        ),
        "opaque": lambda: st.binary(max_size=20),
        "strings": lambda: st.lists(text, max_size=3),
        "scalars": lambda: st.lists(scalars(item.type), max_size=4),
        "tables": lambda: st.lists(st.deferred(lambda: tables(item.type)), max_size=2),
    }[item.kind]()


def scalars(form: str) -> st.SearchStrategy:
    if form == "?":
        return st.booleans()
    if form in "fd":
        return st.floats(width=32 if form == "f" else 64, allow_nan=False)
    bits = 8 * struct.calcsize("<" + form)
    low, high = (0, 2**bits - 1) if form.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return st.integers(low, high)


@pytest.mark.parametrize("by_size", [False, True])
@pytest.mark.parametrize(
    "root",
    [program.Program, bundled_program.BundledProgram, etdump.ETDump],
    ids=lambda t: t.__name__,
)
def test_any_tables(root, by_size):
    @given(tables(root))
    def check(value):
        content = encode(value, "TEST", by_size=by_size)
        assert decode(root, content, "TEST") == value
        prefixed = encode(value, "TEST", size_prefixed=True)
        assert decode_size_prefixed(root, prefixed, "TEST") == value

    check()


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=4),
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        st.binary(max_size=40),
        max_size=4,
    ),
    st.sampled_from([1, 16, 64, 128, 4096]),
    st.sampled_from([1, 16, 48, 1024]),
)
def test_any_blobs(initial, named, segment_alignment, alignment):
    pte = PteFile(
        Program(),
        mutable_data=list(initial),
        named_data={name: NamedBlob(blob, alignment) for name, blob in named.items()},
    )
    content = serialize_pte(pte, segment_alignment=segment_alignment)
    back = read_pte(content)
    assert [bytes(blob) for blob in back.mutable_data] == initial
    assert {name: bytes(blob.data) for name, blob in back.named_data.items()} == named
    for blob in back.named_data.values():
        if len(blob.data):
            assert content.find(blob.data) >= 0
    ptd = PtdFile(dict(pte.named_data))
    back = read_ptd(serialize_ptd(ptd, segment_alignment=segment_alignment))
    assert {name: bytes(blob.data) for name, blob in back.named_data.items()} == named


@pytest.mark.parametrize("name", PROGRAMS)
def test_writing_is_deterministic(name):
    assert serialize_pte(PROGRAMS[name]()) == serialize_pte(PROGRAMS[name]())


def test_writing_leaves_the_program_alone():
    pte = delegated()
    serialize_pte(pte)
    assert pte.program == delegated().program
    assert pte.delegates == delegated().delegates


def test_exported_files_come_back_byte_for_byte(exported):
    content = exported.read_bytes()
    assert serialize_pte(read_pte(exported)) == content
    assert serialize_pte(read_pte(content)) == content


def test_external_weights_come_back_byte_for_byte(data):
    content = (data / "external.ptd").read_bytes()
    ptd = read_ptd(content)
    assert serialize_ptd(ptd) == content
    assert ptd.named_data["weight"].layout == TensorLayout(ScalarType.FLOAT, [3, 4], [0, 1])


def test_bundled_program_comes_back_byte_for_byte(data):
    content = (data / "add.bpte").read_bytes()
    bundle = decode(bundled_program.BundledProgram, content, "BP08")
    assert encode(bundle, "BP08", by_size=False) == content
    assert read_pte(bundle.program).program.execution_plan[0].name == "forward"


def test_initial_values_and_constants_are_split(data):
    pte = read_pte(data / "linbuf_init.pte")
    assert struct.unpack("<3f", pte.mutable_data[0]) == (0, 1, 2)
    assert [len(blob) for blob in pte.constants] == [48, 12, 8]


def test_equal_delegates_share_a_segment():
    program = read_raw(serialize_pte(delegated()))
    places = [plan.delegates[0].processed for plan in program.execution_plan]
    assert places[0] == places[1] == BackendDelegateDataReference(DataLocation.SEGMENT, 1)
    segment = {item.key: item.segment_index for item in program.named_data}
    assert segment["weights"] == segment["same"]
    assert program.segments[segment["weights"]].offset % 256 == 0
    assert len(program.segments) == 4


def read_raw(content: bytes) -> Program:
    from etx_schema.pte_reader import read_program

    return read_program(memoryview(content))[0]


def test_no_header_without_segment_data():
    content = serialize_pte(add())
    assert content[8:12] != b"eh00"
    assert len(read_raw(content).segments) == 1


def test_header_and_alignments():
    content = serialize_pte(counter(), segment_alignment=512)
    magic, length, size, base, data_size = struct.unpack_from("<4sIQQQ", content, 8)
    assert (magic, length) == (b"eh00", 32)
    assert base % 512 == 0
    assert size <= base
    assert base + data_size == len(content)
    assert all(segment.offset % 512 == 0 for segment in read_raw(content).segments)


def test_constants_are_aligned_and_index_0_is_reserved():
    blobs = [b"a" * 5, b"b" * 20, b"c"]
    pte = PteFile(Program(), constants=blobs)
    assert read_raw(serialize_pte(pte)).constant_segment.offsets == [0, 0, 16, 48]
    narrow = read_raw(serialize_pte(pte, constant_alignment=1))
    assert narrow.constant_segment.offsets == [0, 0, 5, 25]


def test_old_header_of_24_bytes():
    content = bytearray(serialize_pte(counter()))
    struct.pack_into("<I", content, 12, 24)
    content[32:40] = bytes(8)
    assert bytes(read_pte(bytes(content)).mutable_data[0]) == counter().mutable_data[0]


def test_old_constants_inside_the_flatbuffer():
    values = [tensor((2,), data=1)]
    old = Program(
        execution_plan=[
            program.ExecutionPlan(name="forward", values=values, chains=[program.Chain()])
        ],
        constant_buffer=[program.Buffer(), program.Buffer(b"12345678")],
    )
    content = encode(old, "ET12")
    assert content.find(b"12345678") % 16 == 0
    pte = read_pte(content)
    assert pte.constants == [b"12345678"]
    modern = read_raw(serialize_pte(pte))
    assert (modern.constant_buffer, modern.constant_segment.offsets) == ([], [0, 0])


def test_empty_delegate_blob_goes_inline():
    pte = delegated()
    pte.delegates = [b"", b"x"]
    raw = read_raw(serialize_pte(pte))
    assert raw.execution_plan[0].delegates[0].processed.location == DataLocation.INLINE
    assert len(raw.backend_delegate_data) == 1


def test_negative_zero_is_kept():
    value = decode(Double, encode(Double(-0.0), "TEST"))
    assert math.copysign(1, value.double_val) == -1


def test_buffers_of_any_kind_are_blobs(tmp_path):
    import array

    numbers = array.array("f", [1, 2, 3])
    pte = counter()
    pte.constants = [numbers]
    write_pte(pte, tmp_path / "m.pte")
    assert bytes(read_pte(tmp_path / "m.pte").constants[0]) == numbers.tobytes()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Int("7"), "Int.int_val cannot hold '7': it is a int64"),
        (Int(2**63), "Int.int_val cannot hold 9223372036854775808"),
        (IntList([1.5]), "IntList.items cannot hold .1.5.: it is a list of int64"),
        (String(5), "String.string_val cannot hold 5: it is a string"),
        (EValue(KernelCall()), "EValue.val cannot hold KernelCall.*one of Null, Int"),
        (KernelCall(0, ["a"]), "KernelCall.args"),
    ],
)
def test_wrong_types_are_named(value, message):
    with pytest.raises(EtxError, match=message):
        encode(value, "TEST")


def test_delegate_without_blob_is_named():
    pte = delegated()
    pte.delegates = []
    with pytest.raises(EtxError, match=r"'decode': delegate 'ToyBackend' refers to blob 0.* has 0"):
        serialize_pte(pte)


def test_tensor_layout_belongs_to_a_ptd():
    pte = add()
    pte.named_data["w"] = NamedBlob(b"1", layout=TensorLayout())
    with pytest.raises(EtxError, match=r"'w': only a .ptd"):
        serialize_pte(pte)


def test_alignment_must_be_positive():
    with pytest.raises(EtxError, match="a positive integer as the alignment, got 0"):
        serialize_pte(add(), segment_alignment=0)
