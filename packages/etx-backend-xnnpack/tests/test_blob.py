# SPDX-License-Identifier: BSD-3-Clause
"""Blobs come back byte for byte, old ones too; damaged ones are refused."""

from __future__ import annotations

import contextlib
import json
import random
import struct
from pathlib import Path

import etx_backend_xnnpack
import pytest
from contract import our_field, our_type
from etx_backend_xnnpack import XnnpackBlob, describe_blob, read_blob, write_blob
from etx_backend_xnnpack._generated import xnnpack as fbs
from etx_schema import EtxError, ProgramError, UnknownFieldError, read_pte
from etx_schema.fbs_parser import parse
from etx_schema.generate import main as generate

DATA = Path(__file__).parent / "data"
PACKAGE = Path(etx_backend_xnnpack.__file__).parent
EXPORTED = sorted(DATA.glob("*.pte"))


def blobs(path: Path) -> list[bytes]:
    return [bytes(blob) for blob in read_pte(path).delegates]


@pytest.mark.parametrize("path", EXPORTED, ids=lambda path: path.stem)
def test_exported_blobs_come_back_byte_for_byte(path):
    found = blobs(path)
    assert found
    for data in found:
        blob = read_blob(data)
        assert (blob.identifier, blob.header) == ("XN01", True)
        assert write_blob(blob) == data


def value(id_out: int, **fields) -> fbs.Value:
    tensor = fbs.TensorValue(
        dtype=fbs.DataType.FP32,
        rank=2,
        sizes=[2, 3],
        external_id=fields.pop("external_id", 2**32 - 1),
        id=id_out,
        **fields,
    )
    return fbs.Value(tensor)


def graph(**fields) -> fbs.Graph:
    payload = fbs.Binary(input1_id=0, input2_id=1, output_id=2)
    return fbs.Graph(
        version="0",
        nodes=[fbs.Node(fbs.Operator.Add, payload)],
        values=[value(0, external_id=0, flags=1), value(1), value(2, external_id=1, flags=2)],
        num_externals=2,
        input_ids=[0],
        output_ids=[2],
        **fields,
    )


def test_old_blob_with_constants_inside():
    old = graph(inline_constants=[fbs.InlineConstant(), fbs.InlineConstant(bytes(range(24)))])
    old.values[1].tensor.constant_index = 1
    old.values[0].tensor.run_time_dtype = fbs.DataType.QDINT8
    data = write_blob(XnnpackBlob(old, identifier="XN00", header=False))
    assert data[4:8] == b"XN00"
    assert data.find(bytes(range(24))) % 16 == 0
    blob = read_blob(data)
    assert blob == XnnpackBlob(old, identifier="XN00", header=False)
    assert write_blob(blob) == data
    lines = describe_blob(data, {})["lines"]
    assert "v1: fp32[2, 3] constant, 24 bytes" in lines
    assert "v0: fp32[2, 3] input 0 quantized at run time to qdint8" in lines


def test_constants_behind_the_graph():
    new = graph(constant_data=[fbs.ConstantPlace(), fbs.ConstantPlace(offset=0, size=24)])
    new.values[1].tensor.constant_index = 1
    data = write_blob(XnnpackBlob(new, bytes(range(24))))
    magic, length, start, size, constants, constant_size = struct.unpack_from("<4sHIIIQ", data, 4)
    assert (magic, length, start, constant_size) == (b"XH00", 30, 32, 24)
    assert constants % 16 == 0
    assert 0 <= constants - start - size < 16
    assert data[constants:] == bytes(range(24))
    blob = read_blob(data)
    assert blob.constant_data == bytes(range(24))
    assert write_blob(blob) == data


@pytest.mark.parametrize("size", range(0, 300, 7))
def test_truncated(size):
    data = blobs(DATA / "dynamic_linear.pte")[0]
    with pytest.raises(ProgramError):
        read_blob(data[:size])


@pytest.mark.parametrize("name", ["dynamic_linear", "ops"])
def test_mutated_blobs_never_crash(name):
    generator = random.Random(0)
    original = blobs(DATA / f"{name}.pte")[-1]
    for _ in range(1500):
        data = bytearray(original)
        for _ in range(generator.randrange(1, 4)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        with contextlib.suppress(ProgramError):
            describe_blob(bytes(data), {})


@pytest.mark.parametrize(
    ("place", "content", "message"),
    [
        (4, b"XY00", "byte 4: expected identifier 'XN01' or 'XN00', found b'XY00'"),
        (36, b"XN02", "byte 36: expected identifier"),
        (14, b"\xff\xff\0\0", "byte 10: the header says that the graph takes 65535 bytes at 32"),
        (22, b"\xff", "byte 18: the header says that constants take 255 bytes"),
        (10, b"\x01", "byte 8: the header of 30 bytes puts the graph at 1"),
    ],
)
def test_damaged_headers(place, content, message):
    data = bytearray(blobs(DATA / "dynamic_linear.pte")[0])
    data[place : place + len(content)] = content
    with pytest.raises(ProgramError, match=message):
        read_blob(data)


def test_blob_that_cannot_be_written():
    with pytest.raises(EtxError, match="expected identifier 'XN01' or 'XN00', got 'XN05'"):
        write_blob(XnnpackBlob(graph(), identifier="XN05"))
    with pytest.raises(EtxError, match="without a header has no room"):
        write_blob(XnnpackBlob(graph(), b"1", header=False))
    wrong = graph()
    wrong.nodes[0].operator = fbs.Unary()
    with pytest.raises(EtxError, match=r"Node.operator cannot hold Unary"):
        write_blob(XnnpackBlob(wrong))


def test_newer_fields_are_not_lost(tmp_path):
    data = bytearray(blobs(DATA / "dynamic_linear.pte")[0])
    root = 32 + struct.unpack_from("<I", data, 32)[0]
    vtable = root - struct.unpack_from("<i", data, root)[0]
    assert struct.unpack_from("<H", data, vtable)[0] == 4 + 2 * 9
    longer = struct.unpack_from("<11H", data, vtable)
    place = len(data)
    data += struct.pack("<12H", longer[0] + 2, *longer[1:], 4)
    struct.pack_into("<i", data, root, root - place)
    struct.pack_into("<I", data, 14, len(data) - 32)
    blob = read_blob(data)
    with pytest.raises(UnknownFieldError, match="Graph has field 9"):
        write_blob(blob)


@pytest.mark.parametrize("version", ["XN00", "XN01"])
def test_slots_are_those_of_the_contract(version):
    expected = json.loads((DATA / "schema-slots.json").read_text())[f"xnnpack_{version}"]
    schema = parse((PACKAGE / "fbs" / "xnnpack.fbs").read_text())
    assert schema.root == our_type(expected["root"])
    for name, rows in expected["tables"].items():
        slots = {item.slot: item.name for item in schema.tables[our_type(name)].fields}
        for row in rows:
            if "tag of" not in row["type"]:
                assert slots[row["id"]] == our_field(row["name"]), name
    for name, members in expected["unions"].items():
        tagged = [(our_type(m["member"]), our_type(m["table"])) for m in members if m["tag"]]
        assert schema.unions[our_type(name)].members == tagged
    for name, enum in expected["enums"].items():
        values = {k.removeprefix("xnn_datatype_").upper(): v for k, v in enum["values"].items()}
        assert schema.enums[our_type(name)].values == values


def test_generated_code_is_up_to_date():
    schema, out = PACKAGE / "fbs" / "xnnpack.fbs", PACKAGE / "_generated" / "xnnpack.py"
    assert generate([str(schema), str(out), "--check"]) == 0
