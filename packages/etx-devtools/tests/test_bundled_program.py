# SPDX-License-Identifier: BSD-3-Clause
"""Bundled programs: both ways with ExecuTorch's file, refused by name, and fuzzed."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from etx_devtools.bundled_program import (
    BundledProgram,
    MethodTestCase,
    MethodTestSuite,
    Tolerance,
    verify,
)
from etx_exir import to_edge
from etx_runtime import LoadError, Runtime
from etx_schema import EtxError, ProgramError, cli, read_bundle, read_pte, serialize_bundle
from hypothesis import given, settings
from hypothesis import strategies as st

THEIRS = Path(__file__).parent / "data" / "executorch.bpte"
FACTORY = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))
        self.example_inputs = ({"x": torch.arange(6.0).reshape(2, 3)}, torch.ones(3))
    def forward(self, a, n):
        self.calls += 1
        return a["x"] * 2 + n + self.calls, a["x"].to(torch.bfloat16).relu()
"""


class Net(torch.nn.Module):
    def forward(self, x, flag: bool, count: int, scale: float):
        return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2) * scale + count


@pytest.fixture(scope="module")
def program():
    given = (torch.zeros(1, 2, 3, 4).to(memory_format=torch.channels_last), True, 3, 0.5)
    return to_edge(torch.export.export(Net(), given)).to_executorch()


def suite(inputs, expected=None, method="forward"):
    return [MethodTestSuite(method, [MethodTestCase(inputs, expected)])]


def test_executorch_s_file_is_written_again_byte_for_byte():
    content = THEIRS.read_bytes()
    bundle = BundledProgram.load(content)
    assert bundle.serialize() == content
    (row,) = verify(bundle)
    assert row.passed
    assert row.max_abs < 1e-6


def test_dim_order_and_numbers(program, tmp_path):
    for make in (torch.contiguous_format, torch.channels_last):
        x = torch.randn(1, 2, 3, 4).to(memory_format=make)
        for scale in (0.5, np.float64(0.5)):
            bundle = BundledProgram(program, suite([x, True, 3, scale], [x * 0.5 + 3]))
            bundle.save(tmp_path / "m.bpte")
            value, *_ = read_bundle(tmp_path / "m.bpte").method_test_suites[0].test_cases[0].inputs
            assert value.val.dim_order == [0, 2, 3, 1]
            (row,) = verify(tmp_path / "m.bpte", tolerance=Tolerance(0, 0))
            assert row.passed, row


def test_numpy_and_torch_bundle_to_the_same_bytes(program):
    x = torch.randn(1, 2, 3, 4)
    made = [
        BundledProgram(program, suite([value, True, 3, 0.5], [value])).serialize()
        for value in (x, x.numpy(), x.numpy().astype(">f4"))
    ]
    assert made[0] == made[1]
    assert made[0] == made[2]


X = torch.zeros(1, 2, 3, 4)
REFUSED = {
    "float32, got float64": ([X.double(), True, 3, 0.5], None),
    r"input 0 .*: got the shape \[1, 2, 3, 5\]": ([torch.zeros(1, 2, 3, 5), True, 3, 0.5], None),
    "expected a tensor, got 3": ([3, True, 3, 0.5], None),
    "input 1 'flag' .*expected a bool, got 1": ([X, 1, 3, 0.5], None),
    "input 2 'count' .*expected a int, got a tensor": ([X, True, X, 0.5], None),
    "2 inputs given, the method has 4": ([X, True], None),
    "2 expected outputs given, the method has 1": ([X, True, 3, 0.5], [X, X]),
    r"expected output 0 .*: got the shape \[2\]": ([X, True, 3, 0.5], [torch.zeros(2)]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refuses_what_does_not_fit(program, message):
    with pytest.raises(EtxError, match=f"forward, case 0.*{message}"):
        BundledProgram(program, suite(*REFUSED[message]))


def test_refuses_names_kinds_and_sources(program):
    case = [X, True, 3, 0.5]
    with pytest.raises(EtxError, match=r"no method 'f' \(it has: forward\)"):
        BundledProgram(program, suite(case, method="f"))
    with pytest.raises(EtxError, match="method 'forward' has several test suites"):
        BundledProgram(program, suite(case) * 2)
    for value in ("s", None):
        with pytest.raises(EtxError, match=f"input 1 is a {type(value).__name__}"):
            MethodTestCase([X, value])
    with pytest.raises(EtxError, match="give either"):
        BundledProgram(program, [], "x.pte")
    with pytest.raises(EtxError, match="got a int"):
        BundledProgram(3)


def change(field, value):
    bundle = read_bundle(THEIRS)
    tensor = bundle.method_test_suites[0].test_cases[0].inputs[0].val
    setattr(tensor, field, value)
    return serialize_bundle(bundle)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("data", b"1234", r"input 0: 4 bytes, float32\[1, 3, 16, 16\] takes 3072"),
        ("sizes", [1, 3, 256], r"dim order \[0, 1, 2, 3\] of 3 dimensions"),
        ("sizes", [1, 3, -16, -16], "has the sizes"),
        ("scalar_type", 3, "input 0 .*expected float32, got int32"),
        ("scalar_type", 99, "unknown scalar type 99"),
        ("dim_order", [0, 0, 0, 0], "dim order"),
    ],
)
def test_misfits_are_named_when_loading(field, value, message):
    with pytest.raises(EtxError, match=f"forward, case 0, .*{message}"):
        BundledProgram.load(change(field, value))


def test_every_cut_is_an_error():
    content = THEIRS.read_bytes()
    for size in range(0, len(content), 32):
        with pytest.raises(EtxError):
            BundledProgram.load(content[:size])
        if size >= 8:
            with pytest.raises(LoadError):
                Runtime.get().load_program(content[:size])
            with pytest.raises(EtxError):
                read_pte(content[:size])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5000), st.binary(min_size=1, max_size=8)), max_size=4))
def test_changed_bytes_are_read_or_refused(changes):
    content = bytearray(THEIRS.read_bytes())
    for place, data in changes:
        content[place : place + len(data)] = data
    try:
        rows = verify(bytes(content))
    except EtxError:
        return
    assert all(row.passed or row.reason for row in rows)


def test_wrong_output_says_where_and_how_far():
    bundle = BundledProgram.load(THEIRS)
    case = bundle.method_test_suites[0].test_cases[0]
    wrong = np.array(case.expected_outputs[0])
    wrong[0, 4] += 0.5
    case.expected_outputs = [wrong]
    (row,) = verify(bundle)
    assert not row.passed
    assert row.at == (0, 4)
    assert row.max_abs == pytest.approx(0.5, abs=1e-6)
    assert row.max_rel == pytest.approx(0.5 / abs(wrong[0, 4]), rel=1e-4)
    assert verify(bundle, tolerance=Tolerance(by_output={0: (1.0, None)}))[0].passed
    wrong[0, 4] = np.nan
    assert verify(bundle)[0].max_abs == float("inf")


@pytest.fixture
def etx(capsys):
    def run(*words):
        code = cli.main([str(word) for word in words])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def model(tmp_path, monkeypatch, etx):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net_of_bundle.py").write_text(FACTORY)
    assert etx("compile", "net_of_bundle.py:Net", "-o", "m.pte")[0] == 0
    return "m.pte"


def test_commands(etx, model):
    eager = ("--eager", "net_of_bundle.py:Net")
    assert etx("bundle", model, *eager, "-o", "m.bpte") == (0, "m.bpte: 1 test case\n", "")
    arrays = {"a['x']": np.ones((2, 3), np.float32), "n": np.zeros(3, np.float32)}
    np.savez("a.npz", n=arrays["n"], **{"a['x']": arrays["a['x']"]})
    np.savez("b.npz", *arrays.values())
    (method,) = json.loads(etx("show", model, "--json")[1])["methods"]
    names = [row["name"] for row in method["inputs"]]
    np.savez("c.npz", **dict(zip(reversed(names), reversed(arrays.values()), strict=True)))
    words = ("--inputs", "b.npz", "--inputs", "c.npz", *eager)
    assert etx("bundle", "m.bpte", *words, "-o", "m.bpte")[1] == "m.bpte: 3 test cases\n"
    code, out, _ = etx("verify", "m.bpte", "--junit", "r.xml")
    assert code == 0
    assert out.endswith("3 test cases: 6 of 6 outputs as expected\n")
    assert len(ElementTree.parse("r.xml").findall(".//testcase")) == 6
    assert "test cases of forward: 3" in etx("show", "m.bpte")[1]
    assert etx("run", "m.bpte")[0] == 0
    assert "(test cases)" in etx("size", "m.bpte")[1]
    assert etx("check", "m.bpte")[0] == 0


def test_verify_fails_by_exit_code(etx, model):
    np.savez("i.npz", np.ones((2, 3), np.float32), np.zeros(3, np.float32))
    np.savez("o.npz", np.full((2, 3), 4, np.float32), np.full((2, 3), 0x3F80, np.uint16))
    words = ("bundle", model, "--inputs", "i.npz", "-o", "m.bpte")
    assert etx(*words, "--expect", "o.npz")[0] == 0
    code, out, _ = etx("verify", "m.bpte", "--json", "--junit", "r.xml")
    assert code == 1
    rows = json.loads(out)["rows"]
    assert [row["passed"] for row in rows] == [False, True]
    assert rows[0]["max_abs"] == 1.0
    assert len(ElementTree.parse("r.xml").findall(".//failure")) == 1
    assert etx("verify", "m.bpte", "--atol", "0=2")[0] == 0
    for option in ("--atol", "--rtol"):
        code, out, err = etx("verify", "m.bpte", option, "2=1")
        assert (code, out) == (2, "")
        assert err == "etx: m.bpte: a tolerance of output 2: outputs are 0 to 1\n"
    assert etx(*words)[0] == 0
    assert "no expected outputs" in etx("verify", "m.bpte")[1]


def test_wrong_commands(etx, model):
    for words, message in {
        (): "no test cases",
        ("--inputs", "none.npz"): "none.npz: no such file",
        ("--inputs", "net_of_bundle.py"): "cannot be read as a .npy or .npz",
        ("--eager", "net_of_bundle.py:Net", "--method", "g"): "has no method 'g' (it has: forward)",
    }.items():
        code, _, err = etx("bundle", model, *words, "-o", "x.bpte")
        assert (code, Path("x.bpte").exists()) == (2, False)
        assert message in err
    assert "this is a program (.pte), not a bundled program" in etx("verify", model)[2]
    etx("bundle", model, "--eager", "net_of_bundle.py:Net", "-o", "x.bpte")
    assert "no test case 7; they are 0 to 0" in etx("verify", "x.bpte", "--case", "7")[2]
    assert "no test cases of method 'g'" in etx("verify", "x.bpte", "--method", "g")[2]
    bundle = read_bundle("x.bpte")
    bundle.method_test_suites = []
    Path("y.bpte").write_bytes(serialize_bundle(bundle))
    assert "the bundle holds no test cases" in etx("verify", "y.bpte")[2]
    with pytest.raises(ProgramError, match="test suite 0 names no method"):
        read_bundle(nameless(bundle))


def nameless(bundle):
    from etx_schema._generated.bundled_program import BundledMethodTestSuite

    bundle.method_test_suites = [BundledMethodTestSuite()]
    return serialize_bundle(bundle)


UNSEEDED = """
import torch

def net():
    return torch.nn.Linear(3, 2), (torch.ones(1, 3),)

def seeded():
    torch.manual_seed(0)
    return net()
"""


def test_a_factory_that_makes_other_weights_each_time(etx, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "unseeded.py").write_text(UNSEEDED)
    for name in ("net", "seeded"):
        assert etx("compile", f"unseeded.py:{name}", "-o", f"{name}.pte")[0] == 0
    code, _, said = etx("bundle", "net.pte", "--eager", "unseeded.py:net", "-o", "n.bpte")
    assert code != 0
    assert "makes other weights each time" in said
    assert "'weight' differs from the file's" in said
    assert not (tmp_path / "n.bpte").exists()
    assert etx("bundle", "seeded.pte", "--eager", "unseeded.py:seeded", "-o", "s.bpte")[0] == 0
    assert etx("verify", "s.bpte")[0] == 0
