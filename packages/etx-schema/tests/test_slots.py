# SPDX-License-Identifier: BSD-3-Clause
"""Field ids, types and defaults are those of the contract."""

from __future__ import annotations

import importlib
import json
import struct

import pytest
from etx_schema import fbs_dir
from etx_schema.fbs_parser import SCALARS, parse
from etx_schema.generate import main as generate

MODULES = {
    "pte": "program",
    "ptd": "flat_tensor",
    "bundled": "bundled_program",
    "etdump": "etdump",
}

OWN = {"DebugEvent": ["thread", "items", "start_time", "end_time"]}
"""What ETX writes behind the fields of the contract; readers of the contract do not see it."""


def contract(data):
    return json.loads((data / "schema-slots.json").read_text())


def slots(rows) -> int:
    return max((r["id"] for r in rows), default=-1) + 1


def wire_type(schema, item) -> str:
    if item.type in schema.unions:
        return f"union {item.type}"
    if item.type in schema.enums:
        return f"{item.type} ({width(schema.enums[item.type].base)})"
    name = width(item.type) if item.type in SCALARS else item.type
    if item.vector:
        return f"vector of {name}"
    return name if item.type in (*SCALARS, "string") else f"table {name}"


def width(name: str) -> str:
    words = {"bool": "bool", "float": "float32", "double": "float64"}
    form = SCALARS[name]
    sign = "u" if form.isupper() else ""
    return words.get(name, f"{sign}int{8 * struct.calcsize('<' + form)}")


@pytest.mark.parametrize("kind", MODULES)
def test_schema_has_the_slots_of_the_contract(kind, data):
    expected = contract(data)[kind]
    schema = parse((fbs_dir() / f"{MODULES[kind]}.fbs").read_text())
    assert (schema.identifier, schema.root) == (expected["identifier"], expected["root"])
    assert set(schema.tables) == set(expected["tables"])
    for name, rows in expected["tables"].items():
        found = {
            item.slot: (item.name, wire_type(schema, item)) for item in schema.tables[name].fields
        }
        own = [found.pop(slot)[0] for slot in sorted(found) if slot >= slots(rows)]
        assert own == OWN.get(name, [])
        fields = {r["id"]: (r["name"], r["type"]) for r in rows if "tag of" not in r["type"]}
        assert found == fields, name
        for row in rows:
            align = (row["attrs"] or "").partition("force_align: ")[2]
            if align:
                item = next(i for i in schema.tables[name].fields if i.slot == row["id"])
                assert item.attributes["force_align"] == int(align)


@pytest.mark.parametrize("kind", MODULES)
def test_enums_and_unions_have_the_numbers_of_the_contract(kind, data):
    expected = contract(data)[kind]
    schema = parse((fbs_dir() / f"{MODULES[kind]}.fbs").read_text())
    for name, enum in expected["enums"].items():
        assert schema.enums[name].values == enum["values"]
        assert width(schema.enums[name].base) == enum["base"]
    for name, members in expected["unions"].items():
        tagged = [(m["member"], m["table"]) for m in members if m["tag"]]
        assert schema.unions[name].members == tagged


@pytest.mark.parametrize("kind", MODULES)
def test_dataclasses_store_fields_where_the_contract_says(kind, data):
    module = importlib.import_module(f"etx_schema._generated.{MODULES[kind]}")
    for name, rows in contract(data)[kind]["tables"].items():
        table = getattr(module, name)
        found = {item.slot: item for item in table.FIELDS}
        assert slots(rows) + len(OWN.get(name, [])) == table.SLOTS
        for row in rows:
            if "tag of" in row["type"]:
                continue
            item = found[row["id"]]
            assert item.name == row["name"]
            if item.kind == "scalar":
                number = row["default"].rpartition("= ")[2]
                number = {"true": 1, "false": 0}.get(number, number)
                assert float(item.default) == float(number)


def test_generated_code_is_up_to_date():
    assert generate(["--check"]) == 0


def test_stale_code_is_reported(tmp_path, capsys):
    out = tmp_path / "program.py"
    out.write_text("old")
    assert generate([str(fbs_dir() / "program.fbs"), str(out), "--check"]) == 1
    assert "stale" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("table A { a: A; } root_type A;", "contains itself"),
        ("struct A { a: int; }", "line 1: expected 'a declaration', found 'struct'"),
        ("\ntable A { a int; }", "line 2: expected ':', found 'int'"),
    ],
)
def test_schema_errors_name_the_line(text, reason, tmp_path):
    (tmp_path / "a.fbs").write_text(text)
    with pytest.raises(ValueError, match=reason):
        generate([str(tmp_path / "a.fbs"), str(tmp_path / "a.py")])
