# SPDX-License-Identifier: BSD-3-Clause
"""The command prints what is in a file; every failure is one line and exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
from etx_schema import NamedBlob, cli, write_pte
from etx_schema.commands.contributed import ELSEWHERE
from programs import PROGRAMS, counter, delegated


def test_show_prints_one_line_an_instruction(etx, data, installed):
    code, out, _ = etx("show", data / "linbuf_init.pte")
    assert code == 0
    assert "    0  %5: float32[] = dim_order_ops::_to_dim_order_copy.out(const3, False, [])" in out
    assert "    1  %8: float32[3] = aten::add.out(state1, %5, 1)" in out
    assert "    5  state1: float32[3] = aten::copy_(state1, %8, False)" in out
    assert "  arenas: 144 bytes" in out
    assert "  1: 12 bytes at 2,560: initial values" in out


def test_show_text(etx, tmp_path, installed):
    for name, build in PROGRAMS.items():
        write_pte(build(), tmp_path / f"{name}.pte")
    _, out, _ = etx("show", tmp_path / "counter.pte")
    assert "0  state1: float32[3] = aten::add.out(state1, const1, 1)  # a.b, m.py:7" in out
    assert "1  if not %3: jump to 3" in out
    assert "3  %3 = True" in out
    _, out, _ = etx("show", tmp_path / "delegated.pte")
    assert "    x: float32[s0=2..8 step 2, 4]" in out
    assert "    in0: float32[<=8, <=4]" in out
    assert "0  delegate 0 ToyBackend(x, %1)" in out
    assert "named data weights, same" in out


def test_show_takes_names_of_constants_from_the_file(etx, tmp_path, installed):
    pte = counter()
    debug = {"forward": {"constants": {"1": "step", "2": 5}, "instructions": "?"}, "x": []}
    pte.named_data["etx/debug"] = NamedBlob(json.dumps(debug).encode())
    write_pte(pte, tmp_path / "m.pte")
    _, out, _ = etx("show", tmp_path / "m.pte")
    assert "0  state1: float32[3] = aten::add.out(state1, step, 1)\n" in out


def test_show_debug_prints_what_a_delegate_holds(etx, tmp_path, installed):
    pte = delegated()
    inner = {"4": {"module": "a", "source": "m.py:1", "op": "aten.add.Tensor"}, "5": 0}
    row = {"module": "a", "op": "Toy", "handles": [4, 5, "x"], "ids": {"0": [4], "1": 5}}
    debug = {"decode": {"instructions": [row], "handles": inner}}
    pte.named_data["etx/debug"] = NamedBlob(json.dumps(debug).encode())
    write_pte(pte, tmp_path / "m.pte")
    _, out, _ = etx("show", tmp_path / "m.pte", "--debug")
    assert "    0  delegate 0 ToyBackend(x, %1)  # a\n" in out
    assert "         handle 4: aten.add.Tensor  # a, m.py:1\n" in out
    assert "         id 0 of the backend: handles 4\n" in out
    assert "handle 4" not in etx("show", tmp_path / "m.pte")[1]
    write_pte(counter(), tmp_path / "m.pte")
    assert etx("show", tmp_path / "m.pte", "--debug")[0] == 0


def test_show_json_has_the_same(etx, data, installed):
    code, out, _ = etx("show", data / "linbuf_init.pte", "--json")
    document = json.loads(out)
    assert code == 0
    method = document["methods"][0]
    assert [row["op"] for row in method["instructions"]][1:3] == [
        "aten::add.out",
        "aten::permute_copy.out",
    ]
    assert method["arenas"] == [144]
    assert sum(segment["size"] for segment in document["segments"]) == 84


def test_every_exported_file_is_shown(etx, exported, installed):
    code, out, _ = etx("show", exported)
    assert code == 0
    assert "method " in out


def test_show_ptd(etx, data):
    _, out, _ = etx("show", data / "external.ptd")
    assert "  weight: float32[3, 4] 48 bytes" in out


def test_show_says_without_a_compiler_whether_executorch_runs_a_file(etx, data):
    _, out, _ = etx("show", data / "add.pte")
    assert "\n  runs on ExecuTorch 1.5.1, too\n" in out


def test_show_marks_what_executorch_lacks(etx, data, installed, tmp_path):
    path = tmp_path / "executorch.json"
    document = {"name": "executorch", "runtime": {"executorch": "1.5.1"}}
    path.write_text(json.dumps({**document, "operators": {"aten::add.out": {}}}))
    installed.append(EntryPoint("executorch", f"{__name__}:target_path", "etx.targets.carried"))
    global TARGET
    TARGET = path
    _, out, _ = etx("show", data / "add.pte")
    assert "\n  runs on ExecuTorch 1.5.1, too\n" in out
    _, out, _ = etx("show", data / "cond.pte")
    why = "because of aten::gt.Scalar_out, aten::mul.out, aten::sum.IntList_out (marked !)"
    assert f"\n  does not run on ExecuTorch 1.5.1, {why}\n" in out
    assert "   !0  %1: float32[] = aten::sum.IntList_out" in out
    assert "    3  %9: float32[3] = aten::add.out" in out


TARGET = None


def target_path():
    return TARGET


def test_show_asks_a_printer_for_the_blob(etx, data, installed):
    installed.append(EntryPoint("XnnpackBackend", f"{__name__}:printer", "etx.show"))
    _, out, _ = etx("show", data / "xnn.pte")
    assert "    a graph of 2432 bytes, 6 named" in out
    installed[0] = EntryPoint("XnnpackBackend", f"{__name__}:broken", "etx.show")
    code, out, _ = etx("show", data / "xnn.pte")
    assert code == 0
    assert "the blob cannot be described: " in out
    assert ":broken: RuntimeError: no" in out


def printer(blob, named_data):
    return {"lines": [f"a graph of {len(blob)} bytes, {len(named_data)} named"]}


def broken(*_):
    raise RuntimeError("no")


@pytest.mark.parametrize("command", ["show", "check"])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.pte", None, "cannot read {path}: no such file or folder"),
        ("", None, "cannot read {path}: it is a directory"),
        ("empty.pte", b"", "{path}: byte"),
        ("photo.png", b"\x89PNG\r\n\x1a\n" + bytes(99), "{path}: byte 4: n"),
        ("short.pte", -100, "truncated or damaged"),
    ],
)
def test_bad_files(command, name, content, message, etx, data, tmp_path):
    path = tmp_path / name if name else tmp_path
    if isinstance(content, int):
        content = (data / "cond.pte").read_bytes()[:content]
    if content is not None:
        path.write_bytes(content)
    code, out, err = etx(command, path)
    assert (code, out) == (2, "")
    assert err.startswith("etx: ")
    assert message.format(path=path) in err
    assert len(err.splitlines()) == 1


def test_other_packages_add_commands(etx, installed):
    installed.append(EntryPoint("greet", f"{__name__}:register_greet", "etx.commands"))
    installed.append(EntryPoint("fail", "no_such_module:register", "etx.commands"))
    assert etx("greet") == (0, "hello\n", "")
    code, _, err = etx("fail", "--option", "x")
    assert code == 2
    assert "the command 'fail' does not load: no_such_module:register: ModuleNotFoundError" in err


def test_one_command_loads_no_other(etx, installed, data):
    installed.append(EntryPoint("greet", f"{__name__}:register_greet", "etx.commands"))
    installed.append(EntryPoint("other", f"{__name__}:interrupt", "etx.commands"))
    assert etx("greet") == (0, "hello\n", "")
    assert etx("show", data / "cond.pte")[0] == 0


def test_commands_of_packages_that_are_not_there(etx, installed):
    for name, packages in ELSEWHERE.items():
        code, out, err = etx(name, "model.pte", "--option")
        assert (code, out) == (2, "")
        assert f"the command '{name}' comes with {packages.split()[0]}, which is not" in err
        assert f"install {packages.replace(' ', ' and ')}\n" in err
        assert f"comes with {packages.split()[0]}" in cli.build_parser().format_help()


def test_stopped_while_commands_load(etx, installed):
    installed.append(EntryPoint("other", f"{__name__}:interrupt", "etx.commands"))
    assert etx("other") == (130, "", "etx: stopped\n")


def interrupt(subparsers):
    raise KeyboardInterrupt


def register_greet(subparsers):
    subparsers.add_parser("greet").set_defaults(run=lambda _: print("hello"))


@pytest.mark.parametrize("words", [["--version"], ["check", "--version"]])
def test_version_lists_what_is_installed(words, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    out = capsys.readouterr().out
    assert caught.value.code == 0
    for line in ("etx-schema 0.", "plugins: ", "targets: "):
        assert line in out


def test_help_teaches(etx):
    code, out, _ = etx()
    assert code == 0
    assert "etx show model.pte" in out


def test_closed_pipe_is_quiet(data):
    command = f"{sys.executable} -m etx_schema.cli show {data / 'methods.pte'} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith("methods.pte")


def test_runs_as_a_process(data):
    command = [sys.executable, "-m", "etx_schema.cli", "show", str(data / "nothing.pte")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
