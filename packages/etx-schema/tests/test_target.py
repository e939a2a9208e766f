# SPDX-License-Identifier: BSD-3-Clause
"""A target tells all at once what a program needs and it lacks."""

from __future__ import annotations

import json

import pytest
from etx_schema import Target, TargetError
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
    found = target(operators={}, limits={"max_rank": 0}).check(pte)
    assert [problem.instruction for problem in found] == [None, None, 0, 4]
    assert found[2].module == "a.b"
    assert str(found[2]).startswith(
        "forward, instruction 0: target 'toy' has no operator aten::add.out [a.b, m.py:7]; rewrite"
    )


def test_dtype_of_the_result():
    found = target(operators={"aten::add.out": {"dtypes": ["int8"]}}).check(add())
    assert "has aten::add.out for int8, not for float32; convert" in str(found[0])
    assert target(operators={"aten::add.out": {}}).check(add()) == []


def test_backend_and_rank():
    found = target(backends=["Other"], limits={"max_rank": 1}).check(delegated())
    assert "no backend ToyBackend (it has: Other)" in str(found[2])
    assert "value 0 has rank 2, target 'toy' takes at most 1" in str(found[0])


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
        ({"name": "a", "backends": "x"}, "backends: expected a list of strings"),
        ({"name": "a", "limits": {"ram": 1}}, "limits: 'ram'"),
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
    with pytest.raises(TargetError, match="is no JSON"):
        Target.load(tmp_path / "bad.json")
    with pytest.raises(TargetError, match="no target 'moon'; installed: "):
        Target.load("moon")
