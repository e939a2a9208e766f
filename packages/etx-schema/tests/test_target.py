# SPDX-License-Identifier: BSD-3-Clause
"""A target tells all at once what a program needs and it lacks."""

from __future__ import annotations

import json

import pytest
from etx_schema import Target, TargetError
from etx_schema.problem import report
from etx_schema.targets.advice import wider_dtype
from etx_schema.targets.rows import in_place, joined, narrowed, spelled
from etx_schema.targets.takes import misfit_of
from programs import add, counter, delegated

DOCUMENT = {
    "name": "toy",
    "version": "1",
    "runtime": {"min_version": "0.1"},
    "operators": {"aten::add.out": {"dtypes": ["float32", "int64"]}},
    "backends": ["ToyBackend"],
    "limits": {"max_rank": 2},
}


def target(**changes) -> Target:
    return Target.parse(DOCUMENT | changes)


@pytest.mark.parametrize("build", [add, counter, delegated])
def test_program_that_fits(build):
    assert target().check(build()) == []


def test_everything_missing_is_named_with_its_line():
    pte = counter()
    plan = pte.program.execution_plan[0]
    plan.chains[0].instructions.append(plan.chains[0].instructions[0])
    found = target(operators={}, limits={"max_rank": 0}).check(pte, [])
    assert [problem.instruction for problem in found] == [0, 0, 0, 4]
    assert [problem.kind for problem in found] == ["max_rank"] * 2 + ["operator"] * 2
    assert found[2].module == "a.b"
    assert str(found[2]).startswith(
        "forward, instruction 0: target 'toy' has no operator aten::add.out [a.b, m.py:7]; rewrite"
    )


def test_dtype_of_the_result():
    found = target(operators={"aten::add.out": {"dtypes": ["int8"]}}).check(add(), [])
    assert "has aten::add.out for int8, not for float32" in str(found[0])
    assert found[0].hint == "rewrite the model without it, or delegate it to a backend"
    assert target(operators={"aten::add.out": {}}).check(add()) == []


def test_backend_and_rank():
    found = target(backends=["Other"], limits={"max_rank": 1}).check(delegated(), [])
    assert "no backend ToyBackend (it has: Other)" in str(found[2])
    assert "value 0 has rank 2, target 'toy' takes at most 1" in str(found[0])


def test_advice_about_an_operator():
    small = target(operators={"aten::add.Scalar_out": {}, "mine::op.out": {}})
    big = target(name="big")
    (found,) = small.check(add(), [big, small])
    assert (found.kind, found.subject) == ("operator", "aten::add.out")
    assert found.hint == (
        "choose target big, which has it; use a form that it has (aten::add.Scalar_out); "
        "rewrite the model without it, or delegate it to a backend"
    )
    elsewhere = target(operators={}, elsewhere={"aten::add.out": "big (in etx-big)"})
    assert elsewhere.check(add(), [])[0].hint.startswith("choose target big (in etx-big), ")
    custom = add()
    custom.program.execution_plan[0].operators[0].name = "yours::add"
    (found,) = small.check(custom, [])
    row = json.loads(found.hint[found.hint.index("{") :])
    assert Target.parse(row, {"toy": written(small)}).check(custom, []) == []


def written(value):
    import tempfile
    from pathlib import Path

    path = Path(tempfile.mkdtemp()) / "t.json"
    fields = {**vars(value), "backends": list(value.backends)}
    path.write_text(json.dumps(fields))
    return path


@pytest.mark.parametrize(
    ("dtypes", "advice"),
    [
        (["int8"], None),
        (["float16", "float64"], "float64"),
        (["float16"], "float16"),
    ],
)
def test_advice_about_a_dtype(dtypes, advice):
    small = target(operators={"aten::add.out": {"dtypes": dtypes}})
    (found,) = small.check(add(), [target(name="big")])
    cast = f"cast the operands to {advice} (`.to(torch.{advice})`); " if advice else ""
    assert found.hint == f"{cast}choose target big, which takes float32"
    assert (found.kind, found.subject) == ("dtype", "float32")


def test_casts_lose_nothing_where_there_is_a_choice():
    assert wider_dtype("uint8", ["int8", "int16", "float32"]) == "int16"
    assert wider_dtype("bfloat16", ["float16", "float32"]) == "float32"
    assert wider_dtype("bool", ["float32"]) == "float32"
    assert wider_dtype("qint8", ["float32"]) is None


def test_advice_about_a_backend():
    small, other = target(backends=[]), target(name="npu", backends=["ToyBackend"])
    found = small.check(delegated(), [other])
    assert found[0].hint.startswith("choose target toy+npu")
    hint = small.check(delegated(), [])[0].hint
    row = json.loads(hint[hint.index("{") : hint.rindex("}") + 1])
    assert Target.parse(row, {"toy": written(small)}).check(delegated(), []) == []


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_instructions": 3}, "it has 4 instructions, target 'toy' takes at most 3"),
        ({"max_data_bytes": 20}, "the file stores 24 bytes of data, target 'toy' takes at most 20"),
        ({"arena_bytes": [8]}, "arena 1 takes 16 bytes, target 'toy' has 8"),
        ({"arena_bytes": []}, "it plans 16 bytes in arena 1, target 'toy' has 0 arenas"),
    ],
)
def test_limits(limits, message):
    (found,) = target(limits=limits).check(counter())
    assert found.message == message
    assert found.kind == next(iter(limits))
    assert found.hint
    enough = {"max_instructions": 4, "max_data_bytes": 24, "arena_bytes": [16]}
    assert target(limits=enough).check(counter()) == []
    assert target(limits={"arena_bytes": [None]}).check(counter()) == []


def test_report_names_each_thing_once():
    pte = counter()
    chain = pte.program.execution_plan[0].chains[0]
    chain.instructions += [chain.instructions[0]] * 4
    lines = list(report(target(operators={}).check(pte, [])))
    assert lines[0] == "  target 'toy' has no operator aten::add.out, 5 times"
    assert lines[1] == "    at method forward, instruction 0, module a.b, m.py:7"
    assert lines[4] == "    and 2 more"
    assert lines[5].startswith("    what to do: ")
    assert len(lines) == 6


def test_targets_build_on_others(tmp_path):
    (tmp_path / "toy.json").write_text(json.dumps(DOCUMENT))
    (tmp_path / "b.json").write_text(
        json.dumps(
            {
                "name": "b",
                "extends": ["toy.json"],
                "operators": {"my::op.out": {}, "aten::add.out": {"dtypes": ["int8"]}},
                "backends": ["Mine"],
                "limits": {"max_rank": 4},
            }
        )
    )
    built = Target.load(tmp_path / "b.json")
    assert built.name == "b"
    assert built.operators["aten::add.out"] == {"dtypes": ["float32", "int64", "int8"]}
    assert built.backends == ("ToyBackend", "Mine")
    assert built.limits == {"max_rank": 4}
    both = Target.load(f"{tmp_path / 'toy.json'}+{tmp_path / 'b.json'}")
    assert both.limits == {"max_rank": 2}
    assert both.name == "toy+b"
    (tmp_path / "b.json").write_text('{"name": "b", "extends": ["b.json"]}')
    with pytest.raises(TargetError, match="extends itself"):
        Target.load(tmp_path / "b.json")
    for name, size in (("c", 1), ("d", 2)):
        document = {"name": name, "limits": {"arena_bytes": [size]}}
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    with pytest.raises(TargetError, match="different limits 'arena_bytes'"):
        Target.load(f"{tmp_path / 'c.json'}+{tmp_path / 'd.json'}")


def test_load_from_file(tmp_path):
    path = tmp_path / "toy.json"
    path.write_text(json.dumps(DOCUMENT))
    assert Target.load(path) == target()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "expected an object"),
        ({}, "name: expected a string"),
        ({"name": "a", "ops": {}}, "unknown key 'ops'"),
        ({"name": "a", "operators": []}, "operators: expected an object"),
        ({"name": "a", "operators": {"x": 1}}, "operators: x: expected an object"),
        ({"name": "a", "operators": {"x": {"dtypes": ["f32"]}}}, "x: unknown dtypes {'f32'}"),
        ({"name": "a", "operators": {"x": {"dtypes": "float32"}}}, "x: unknown dtypes float32"),
        (
            {"name": "a", "operators": {"x": {"in_place": 1}}},
            "x: 'in_place': expected true or false",
        ),
        ({"name": "a", "backends": "x"}, "backends: expected a list of strings"),
        ({"name": "a", "limits": {"ram": 1}}, "limits: unknown limit 'ram'; expected max_rank"),
        ({"name": "a", "limits": {"max_rank": -1}}, "limits: 'max_rank': expected an integer"),
        ({"name": "a", "limits": {"arena_bytes": [-1]}}, "'arena_bytes': expected a list"),
        ({"name": "a", "extends": "x"}, "extends: expected a list of strings"),
        ({"name": "a", "extends": ["moon"]}, "unknown target 'moon'"),
    ],
)
def test_bad_documents(document, message, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document))
    with pytest.raises(TargetError, match=message) as caught:
        Target.load(path)
    assert str(path) in str(caught.value)


def test_bad_files(tmp_path):
    with pytest.raises(TargetError, match=r"cannot read target .*nothing.json: No such file"):
        Target.load(tmp_path / "nothing.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(TargetError, match="is not JSON"):
        Target.load(tmp_path / "bad.json")
    with pytest.raises(
        TargetError, match=r"unknown target 'moon'; expected a \.json file or one of "
    ):
        Target.load("moon")


def bounded(row, **changes):
    """Return what stands against `add`, whose kernel takes what both rows take."""
    document = {"name": "peer", "extends": ["toy"], "narrower": {"aten::add.out": row}}
    base = Target.parse(DOCUMENT | changes)
    names = {"toy": written(base)}
    return [p.message for p in Target.parse(document, names).check(add(), [])]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("rank<=2", ""),
        ("rank<=1", "with self of rank <= 1, not of rank 2"),
        ("float32 rank>=1", ""),
        ("int64 rank>=1", "with self of int64, not of float32"),
    ],
)
def test_bounds_of_a_narrower_kernel(words, text):
    found = bounded({"arguments": {"self": words}, "why": "its kernel says so"})
    assert [text and f"target 'peer' has aten::add.out {text} (its kernel says so)"] == (
        found or [""]
    )


def test_a_bound_of_a_number_and_of_a_list():
    alpha = {"arguments": {"self": "", "other": "", "alpha": "value==2"}}
    assert "with alpha of value == 2, not of value 1" in bounded(alpha)[0]
    with pytest.raises(TargetError, match="unknown dtypes in 'rank<2'"):
        bounded({"arguments": {"self": "rank<2"}})


def test_both_rows_are_spelled():
    both = narrowed({"dtypes": ["int8"]}, {"arguments": {"self": "rank>=1"}})
    assert spelled(both) == "int8 & self rank>=1"
    assert narrowed({}, both) == both


ROWS, LAST = (0, 1, 2, 3), (0, 2, 3, 1)


@pytest.mark.parametrize(
    ("layout", "orders", "fits"),
    [
        ("rows", (ROWS, ROWS), True),
        ("rows", (LAST, LAST), False),
        ("one", (LAST, LAST), True),
        ("one", (LAST, ROWS, LAST), False),
        ("one", (LAST, (0,), LAST), False),
        ("one", ((1, 0), (1, 0)), False),
        ("ends", (LAST, ROWS, (0,), LAST), True),
        ("ends", (ROWS, LAST, LAST), False),
    ],
)
def test_layouts_of_a_row(layout, orders, fits):
    kinds = [["float32"]] * len(orders)
    row = {"all": [{"all": [{"layout": layout, "why": "measured"}]}]}
    found = misfit_of(row, kinds, "float32", (), orders)
    assert (found is None) == fits
    assert fits or str(found).endswith(" (measured)")


def test_a_layout_is_one_of_three():
    with pytest.raises(TargetError, match="layout 'columns'; expected rows, one, ends"):
        bounded({"layout": "columns"})


def test_tensors_of_two_dtypes_are_as_no_result():
    row = {"arguments": {"tensors": "", "out": "=tensors"}}
    assert misfit_of(row, [["float32", "float32"], ["float32"]], "float32") is None
    assert misfit_of(row, [["int64", "float64"], ["float64"]], "float64") is not None
    assert misfit_of(row, [["float64", "int64"], ["float64"]], "float64") is not None


def test_results_in_place():
    yes, no, some = {"in_place": True}, {"in_place": False}, {"dtypes": ["int8"]}
    row, other = {**yes, **some}, {**yes, "arguments": {"self": "int8"}}
    assert [in_place(each) for each in (row, some, {}, no)] == [True, False, False, False]
    assert in_place(narrowed(row, {"dtypes": ["int8"]}))
    assert not in_place(narrowed(narrowed(row, some), no))
    assert joined(row, {**yes, "dtypes": ["bool"]}) == {**yes, "dtypes": ["int8", "bool"]}
    assert in_place(joined(joined(row, other), row))
    assert not in_place(joined(row, some))
    assert spelled(row) == spelled(narrowed(row, no)) == "int8"
    assert bounded(yes) == []
