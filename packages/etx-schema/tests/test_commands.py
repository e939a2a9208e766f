# SPDX-License-Identifier: BSD-3-Clause
"""`etx check` names all that is missing; `etx targets` what there is; `etx strip` only removes."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint

import pytest
from etx_schema import NamedBlob, read_pte, write_pte
from etx_schema.pte_reader import read_program
from etx_schema.strip import Alignments
from programs import PROGRAMS, counter, delegated

BOARD = {
    "name": "board",
    "version": "2",
    "description": "a small one",
    "operators": {"aten::add.out": {"dtypes": ["float32"]}, "aten::sum.IntList_out": {}},
    "backends": ["ToyBackend"],
    "limits": {"max_rank": 4, "arena_bytes": [1024]},
    "elsewhere": {"aten::gt.Scalar_out": "big"},
}


@pytest.fixture
def board(tmp_path):
    path = tmp_path / "board.json"
    path.write_text(json.dumps(BOARD))
    return path


def board_path():
    return PATH


@pytest.fixture
def offered(board, installed):
    """Offer the target as an installed package would."""
    global PATH
    PATH = board
    installed.append(EntryPoint("board", f"{__name__}:board_path", "etx.targets"))
    return installed


def test_check(etx, data, installed, tmp_path):
    assert etx("check", data / "add.pte") == (0, f"{data / 'add.pte'}: no problems\n", "")
    pte = counter()
    pte.program.execution_plan[0].inputs = [40]
    write_pte(pte, tmp_path / "m.pte")
    code, out, _ = etx("check", tmp_path / "m.pte", "--json")
    assert code == 1
    document = json.loads(out)
    assert document["problems"][0]["message"] == "input 0 is value 40, there are 6 values"
    assert document["problems"][0]["kind"] == "invalid"
    code, out, _ = etx("check", tmp_path / "m.pte")
    assert out.endswith("input 0 is value 40, there are 6 values\n    at method forward\n")


def test_check_says_what_a_file_is_compared_with(etx, data, offered, tmp_path):
    _, out, _ = etx("check", data / "cond.pte")
    assert "cond.pte: 2 problems on target 'board', which is installed here\n" in out
    write_pte(delegated(), tmp_path / "m.pte")
    other = tmp_path / "npu.json"
    other.write_text(json.dumps({"name": "npu", "extends": ["board"], "backends": ["Npu"]}))
    code, out, _ = etx("check", tmp_path / "m.pte", "--target", "board")
    assert "not installed here" not in out
    board = json.loads(PATH.read_text())
    PATH.write_text(json.dumps({**board, "backends": []}))
    other.write_text(json.dumps({**board, "operators": {}}))
    pte = delegated()
    pte.program.execution_plan[0].chains[0].instructions[:] = []
    write_pte(pte, tmp_path / "m.pte")
    code, out, _ = etx("check", tmp_path / "m.pte", "--target", other)
    assert code == 0
    assert out.endswith("  it calls ToyBackend, not installed here: it cannot run here\n")
    code, out, _ = etx("check", tmp_path / "m.pte")
    assert code == 1


def test_check_with_a_runtime_that_has_no_kernels(etx, data, installed):
    installed.append(EntryPoint("plugin", f"{__name__}:board_path", "etx.abi"))
    code, out, _ = etx("check", data / "add.pte")
    assert code == 1
    assert "1 problem on target 'this installation', a runtime without kernels\n" in out


def test_check_names_whose_a_backend_is(etx, installed, board, tmp_path):
    peer = {"name": "theirs", "extends": ["board"], "backends": ["Peer"]}
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps({**peer, "extends": [], "runtime": {"executorch": "1.5.1"}}))
    global PATH
    PATH = path
    installed.append(EntryPoint("theirs", f"{__name__}:board_path", "etx.targets.carried"))
    pte = delegated()
    pte.program.execution_plan[0].delegates[0].id = "Peer"
    write_pte(pte, tmp_path / "m.pte")
    _, out, _ = etx("check", tmp_path / "m.pte", "--target", board)
    assert "what to do: ExecuTorch 1.5.1 has it (--target theirs); to run it with ETX, " in out


def test_check_of_a_file_without_origins_names_instruction_and_operator(etx, data, offered):
    code, out, _ = etx("check", data / "cond.pte", "--target", "board")
    assert code == 1
    assert "cond.pte: 2 problems on target 'board'\n" in out
    assert "  target 'board' has no operator aten::gt.Scalar_out\n    at method forward, " in out
    assert "instruction 1\n    what to do: choose target big, which has it" in out


def test_check_against_several_targets(etx, data, board, tmp_path):
    other = tmp_path / "all.json"
    names = ("gt.Scalar_out", "mul.out", "sub.out", "add.out", "sum.IntList_out")
    other.write_text(json.dumps({"name": "all", "operators": {f"aten::{n}": {} for n in names}}))
    file = data / "cond.pte"
    code, out, _ = etx("check", file, "--target", other)
    assert (code, out) == (0, f"{file}: no problems on target 'all'\n")
    code, out, _ = etx("check", file, "--target", other, "--target", board, "--json")
    assert code == 1
    found = {row["name"]: row["problems"] for row in json.loads(out)["targets"]}
    assert found["all"] == []
    assert {row["kind"] for row in found["board"]} == {"operator"}
    assert {row["subject"] for row in found["board"]} == {"aten::gt.Scalar_out", "aten::mul.out"}
    code, out, _ = etx("check", file, "--target", f"{board}+{other}")
    assert (code, out) == (0, f"{file}: no problems on target 'board+all'\n")


def test_unknown_target(etx, data, offered):
    code, _, err = etx("check", data / "add.pte", "--target", "moon")
    assert code == 2
    assert "unknown target 'moon'; expected a .json file or one of board" in err


def test_targets(etx, offered, installed):
    line = "board 2: 2 operators, backends ToyBackend; a small one\n"
    assert etx("targets")[1] == line
    code, out, _ = etx("targets", "board")
    assert code == 0
    assert out.startswith(line)
    assert "  max_rank: 4\n  arena_bytes: [1024]\n" in out
    assert "    aten::add.out: float32\n    aten::sum.IntList_out: every dtype\n" in out
    assert "    not aten::gt.Scalar_out, which target big has\n" in out
    assert json.loads(etx("targets", "board", "--json")[1])["backends"] == ["ToyBackend"]
    offered.append(EntryPoint("gone", f"{__name__}:nothing", "etx.targets"))
    rows = json.loads(etx("targets", "--json")[1])
    assert [row["operators"] for row in rows[:1]] == [2]
    assert "has no attribute 'nothing'" in rows[1]["error"]
    assert "gone: not usable: " in etx("targets")[1]
    installed.clear()
    assert etx("targets")[1].startswith("no targets are installed")


def test_targets_describes_a_file(etx, board):
    _, out, _ = etx("targets", board)
    assert out.startswith("board 2: a small one\n  backends: ToyBackend\n")
    code, _, err = etx("targets", "moon")
    assert code == 2
    assert "unknown target 'moon'" in err


@pytest.mark.parametrize("name", PROGRAMS)
def test_strip_leaves_all_but_origins(name, etx, tmp_path):
    pte = PROGRAMS[name]()
    pte.named_data |= {key: NamedBlob(b"{}" * 300) for key in ("etx/debug", "etx/debug/layers")}
    source, small = tmp_path / "m.pte", tmp_path / "small.pte"
    write_pte(pte, source)
    code, out, _ = etx("strip", source, "-o", small)
    assert code == 0
    assert out == f"{small}: {small.stat().st_size:,} bytes, {saved(source, small):,} fewer\n"
    assert saved(source, small) > 500
    before, after = read_pte(source), read_pte(small)
    del before.named_data["etx/debug"], before.named_data["etx/debug/layers"]
    assert after == before
    first = small.read_bytes()
    etx("strip", small, "-o", small)
    assert small.read_bytes() == first


def saved(source, small):
    return source.stat().st_size - small.stat().st_size


def test_strip_keeps_alignments(etx, tmp_path):
    pte = delegated()
    pte.named_data["etx/debug"] = NamedBlob(b"{}")
    pte.named_data["page"] = NamedBlob(b"weights", alignment=8192)
    write_pte(pte, tmp_path / "m.pte", segment_alignment=4096)
    etx("strip", tmp_path / "m.pte", "-o", tmp_path / "s.pte")
    program, layout = read_program(memoryview((tmp_path / "s.pte").read_bytes()))
    kept = Alignments.of(program, layout)
    assert kept.segments % 4096 == 0
    assert kept.named["page"] % 8192 == 0


def test_strip_of_any_file(exported, etx, tmp_path):
    small = tmp_path / "s.pte"
    assert etx("strip", exported, "-o", small)[0] == 0
    before, after = read_pte(exported), read_pte(small)
    assert [bytes(blob) for blob in after.constants] == [bytes(blob) for blob in before.constants]
    assert [bytes(blob) for blob in after.delegates] == [bytes(blob) for blob in before.delegates]
    assert all(not chain.stacktrace for p in after.program.execution_plan for chain in p.chains)
    assert etx("check", small)[0] == etx("check", exported)[0]


def test_strip_writes_nothing_for_a_bad_file(etx, data, tmp_path):
    (tmp_path / "bad.pte").write_bytes((data / "cond.pte").read_bytes()[:200])
    code, _, err = etx("strip", tmp_path / "bad.pte", "-o", tmp_path / "s.pte")
    assert code == 2
    assert "bad.pte: byte" in err
    assert not (tmp_path / "s.pte").exists()
    code, _, err = etx("strip", data / "add.pte", "-o", tmp_path / "no" / "s.pte")
    assert code == 2
    assert "there is no folder" in err
