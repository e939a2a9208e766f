# SPDX-License-Identifier: BSD-3-Clause
"""Every byte of a file is in exactly one row of each view."""

from __future__ import annotations

import argparse
import json
import random
import re
from pathlib import Path

import pytest
from etx_devtools import VIEWS, Row, commands, sizes
from etx_devtools import size as size_module
from etx_schema import (
    Buffer,
    Chain,
    EtxError,
    EValue,
    ExecutionPlan,
    ExtraTensorInfo,
    NamedBlob,
    Program,
    ProgramError,
    ScalarType,
    Tensor,
    encode,
    read_pte,
    serialize_pte,
)

HERE = Path(__file__).parent
FILES = sorted((HERE / "data").glob("*.pte"))


def rows(source, view: str) -> dict[str, int]:
    return {row.name: row.bytes for row in sizes(source).by(view)}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rows_add_up_to_the_file(path, view):
    report = sizes(path)
    assert report.file_size == path.stat().st_size
    assert sum(row.bytes for row in report.by(view)) == report.file_size


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_pieces_cover_the_file_once(path):
    report = sizes(path)
    position = 0
    for piece in report.pieces:
        assert piece.start == position
        assert piece.size > 0
        position = piece.end
    assert position == report.file_size


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_padding_is_zeros(path):
    content = path.read_bytes()
    for piece in sizes(path).pieces:
        if piece.kind == "padding":
            assert not any(content[piece.start : piece.end])


def test_missing_bytes_are_noticed():
    report = sizes(FILES[0])
    report.pieces.pop()
    with pytest.raises(AssertionError, match="rows add up to"):
        report.by("operator")


def test_by_weight():
    found = rows(HERE / "data" / "linbuf_init.pte", "weight")
    assert (found["const1"], found["const2"], found["const3"], found["state1"]) == (48, 12, 8, 12)
    pte = read_pte(HERE / "data" / "linbuf_init.pte")
    for value in pte.program.execution_plan[0].values:
        tensor = value.val
        if isinstance(tensor, Tensor) and tensor.sizes == [3, 4] and tensor.data_buffer_idx:
            tensor.extra_tensor_info = ExtraTensorInfo(fully_qualified_name="l.weight")
    assert rows(serialize_pte(pte), "weight")["l.weight"] == 48


def test_by_operator():
    found = rows(HERE / "data" / "linbuf_init.pte", "operator")
    assert found["aten::permute_copy.out"] > 48
    assert found["shared by aten::add.out, aten::copy_"] == 12
    found = rows(HERE / "data" / "dynamic_linear.pte", "operator")
    assert found["delegate XnnpackBackend"] > 2 * 1040
    assert rows(HERE / "data" / "cond.pte", "operator")["(control flow)"] > 0


def test_operators_grow_with_their_constants():
    pte = read_pte(HERE / "data" / "counter.pte")
    before = rows(serialize_pte(pte), "operator")["aten::add.out"]
    pte.constants[0] = bytes(1000)
    for value in pte.program.execution_plan[0].values:
        if isinstance(value.val, Tensor) and value.val.allocation_info is None:
            value.val.sizes = [250]
    assert rows(serialize_pte(pte), "operator")["aten::add.out"] == before + 1000 - 12


def test_by_module():
    pte = read_pte(HERE / "data" / "methods.pte")
    plan = pte.program.execution_plan[0]
    debug = {
        plan.name: {
            "instructions": [{"module": "m.l", "op": "x"}, None],
            "constants": {"1": "m.l.weight"},
        }
    }
    pte.named_data["etx/debug"] = NamedBlob(json.dumps(debug).encode())
    assert rows(serialize_pte(pte), "weight")["m.l.weight"] == 64
    found = rows(serialize_pte(pte), "module")
    assert found["m.l"] > 0
    assert found["(unknown module)"] > 0
    assert found["named data etx/debug"] == len(pte.named_data["etx/debug"].data)


def test_shared_blobs_are_counted_once():
    report = sizes(HERE / "data" / "delegated.pte")
    names = {row.name: row.bytes for row in report.by("weight")}
    assert names["delegate 0: ToyBackend"] == 35
    assert names["named data weights"] == 64
    assert "named data same" not in names


def test_constants_inside_the_flatbuffer():
    tensor = Tensor(scalar_type=ScalarType.FLOAT, sizes=[8], dim_order=[0], data_buffer_idx=1)
    plan = ExecutionPlan(name="forward", values=[EValue(tensor)], chains=[Chain()])
    old = Program(execution_plan=[plan], constant_buffer=[Buffer(), Buffer(bytes(32))])
    assert rows(encode(old, "ET12"), "weight")["const1"] >= 32


def test_damaged_files_are_refused():
    generator = random.Random(0)
    for path in FILES:
        original = path.read_bytes()
        for _ in range(150):
            content = bytearray(original)
            for _ in range(3):
                content[generator.randrange(len(content))] = generator.randrange(256)
            try:
                report = sizes(bytes(content))
            except ProgramError:
                continue
            for view in VIEWS:
                assert sum(row.bytes for row in report.by(view)) == len(content)


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "x.pte"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(EtxError, match=r"x.pte: byte 4: not a .pte file"):
        sizes(path)
    with pytest.raises(EtxError, match="no such file"):
        sizes(tmp_path / "missing.pte")
    with pytest.raises(EtxError, match="unknown view 'colour'; expected one of operator, weight"):
        sizes(FILES[0]).by("colour")


@pytest.fixture
def etx(capsys):
    parser = argparse.ArgumentParser()
    commands.register(parser.add_subparsers())

    def run(*arguments):
        options = parser.parse_args([str(each) for each in arguments])
        options.run(options)
        return capsys.readouterr().out

    return run


def test_command(etx):
    path = HERE / "data" / "linbuf_init.pte"
    lines = etx("size", path).splitlines()
    assert lines[0] == "1,996   77.6 %  (tables)"
    assert lines[-1] == f"2,572  100.0 %  {path}"
    numbers = [int(line.split()[0].replace(",", "")) for line in lines]
    assert sum(numbers[:-1]) == numbers[-1] == path.stat().st_size


def test_command_json(etx):
    path = HERE / "data" / "methods.pte"
    document = json.loads(etx("size", path, "--by", "weight", "--json"))
    assert document["by"] == "weight"
    assert sum(row["bytes"] for row in document["rows"]) == document["bytes"]
    assert Row(**document["rows"][0]) in size_module.sizes(path).by("weight")


def test_readme_runs(tmp_path, monkeypatch, capsys):
    readme = (HERE.parent / "README.md").read_text()
    code = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[0]
    (tmp_path / "model.pte").write_bytes((HERE / "data" / "methods.pte").read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert "64 const1" in capsys.readouterr().out
