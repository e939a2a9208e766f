# SPDX-License-Identifier: BSD-3-Clause
"""Files of a newer schema load; a rewrite that would lose what is new refuses."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from etx_schema import (
    EValue,
    Int,
    PtdFile,
    ScalarType,
    UnknownFieldError,
    UnknownMember,
    encode,
    fbs_dir,
    read_ptd,
    read_pte,
    serialize_ptd,
    serialize_pte,
)
from etx_schema.generate import generate
from etx_schema.pte_reader import read_program
from etx_schema.segments import NamedBlob
from programs import counter, delegated


def newer(tmp_path: Path, schema: str, table: str, field: str):
    """Import dataclasses of a schema in which `table` has one field more."""
    text = (fbs_dir() / f"{schema}.fbs").read_text()
    head, _, tail = text.partition(f"table {table} {{")
    body, _, tail = tail.partition("}")
    text = f"{head}table {table} {{{body}  {field}\n}}{tail}"
    path = tmp_path / f"newer_{schema}_{table}.py"
    path.write_text(generate(text, path.name))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def convert(value, module):
    """Rebuild a table with the classes of another schema."""
    if isinstance(value, list):
        return [convert(each, module) for each in value]
    if not hasattr(value, "FIELDS"):
        return value
    cls = getattr(module, type(value).__name__)
    return cls(**{f.name: convert(getattr(value, f.name), module) for f in value.FIELDS})


def find(value, name: str):
    if type(value).__name__ == name:
        return value
    children = (
        value
        if isinstance(value, list)
        else [getattr(value, f.name) for f in getattr(value, "FIELDS", ())]
    )
    return next((found for child in children if (found := find(child, name)) is not None), None)


TABLES = {
    "Program": 8,
    "ExecutionPlan": 10,
    "Chain": 4,
    "Tensor": 10,
    "EValue": 2,
    "KernelCall": 2,
    "Operator": 2,
    "DataSegment": 2,
    "SubsegmentOffsets": 2,
    "NamedData": 2,
}


@pytest.mark.parametrize("table", TABLES)
def test_unknown_field_is_carried_but_not_lost(table, tmp_path):
    module = newer(tmp_path, "program", table, "novelty: string;")
    content = serialize_pte(counter())
    raw, layout = read_program(memoryview(content))
    raw = convert(raw, module)
    find(raw, table).novelty = "new"
    body = encode(raw, "ET12", by_size=False)
    new = with_header(body, content, layout)

    pte = read_pte(new)
    assert pte.program.execution_plan[0].name == "forward"
    assert bytes(pte.mutable_data[0]) == counter().mutable_data[0]
    with pytest.raises(UnknownFieldError, match=rf"{table} has field {TABLES[table]}, ") as caught:
        serialize_pte(pte)
    place = caught.value.offset
    start = place + int.from_bytes(new[place : place + 4], "little")
    assert new[start + 4 : start + 7] == b"new"


def with_header(body: bytes, old: bytes, layout) -> bytes:
    import struct

    size = len(body) + 32
    base = -(-size // 128) * 128
    root = struct.unpack_from("<I", body)[0] + 32
    header = struct.pack("<4sIQQQ", b"eh00", 32, size, base, layout.segment_data_size)
    new = struct.pack("<I", root) + body[4:8] + header + body[8:]
    return new.ljust(base, b"\0") + old[layout.segment_base :]


def test_unknown_field_of_a_delegate_reference(tmp_path):
    module = newer(tmp_path, "program", "BackendDelegateDataReference", "checksum: uint;")
    content = serialize_pte(delegated())
    raw, layout = read_program(memoryview(content))
    raw = convert(raw, module)
    raw.execution_plan[1].delegates[0].processed.checksum = 7
    pte = read_pte(with_header(encode(raw, "ET12"), content, layout))
    with pytest.raises(UnknownFieldError, match="BackendDelegateDataReference has field 2"):
        serialize_pte(pte)


def test_unknown_field_at_its_default_is_no_loss(tmp_path):
    module = newer(tmp_path, "program", "Program", "novelty: int;")
    content = encode(convert(read_pte(serialize_pte(counter())).program, module), "ET12")
    serialize_pte(read_pte(content))


def test_unknown_type_of_value(tmp_path):
    text = (fbs_dir() / "program.fbs").read_text()
    text = text.replace("  OptionalTensorList,\n}", "  OptionalTensorList,\n  Operator,\n}")
    path = tmp_path / "newer_union.py"
    path.write_text(generate(text, path.name))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    plan = module.ExecutionPlan(values=[module.EValue(module.Operator(name="x"))])
    pte = read_pte(encode(module.Program(execution_plan=[plan]), "ET12"))
    value = pte.program.execution_plan[0].values[0].val
    assert isinstance(value, UnknownMember)
    assert value.tag == 12
    with pytest.raises(UnknownFieldError, match="EValue has field 1"):
        serialize_pte(pte)


def test_unknown_number_of_an_enum_comes_back():
    assert ScalarType(8).name == "UNKNOWN_8"
    assert ScalarType(8) == 8
    with pytest.raises(ValueError):
        ScalarType("float")


def test_unknown_field_of_a_ptd(tmp_path):
    module = newer(tmp_path, "flat_tensor", "NamedData", "checksum: uint;")
    content = serialize_ptd(PtdFile({"w": NamedBlob(b"1234")}))
    from etx_schema.ptd import HEADER, read_ptd_root

    root, _ = read_ptd_root(memoryview(content))
    root = convert(root, module)
    root.named_data[0].checksum = 9
    body = encode(root, "FT01")
    size = len(body) + 48
    base = -(-size // 128) * 128
    header = HEADER.pack(b"FH01", 40, 48, len(body), base, 4).ljust(48, b"\0")
    start = (int.from_bytes(body[:4], "little") + 48).to_bytes(4, "little")
    new = (start + body[4:8] + header + body[8:]).ljust(base, b"\0") + b"1234"
    ptd = read_ptd(new)
    assert bytes(ptd.named_data["w"].data) == b"1234"
    with pytest.raises(UnknownFieldError, match="NamedData has field 3"):
        serialize_ptd(ptd)


def test_values_keep_their_class():
    assert type(EValue(Int(3)).val) is Int
