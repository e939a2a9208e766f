# SPDX-License-Identifier: BSD-3-Clause
"""The page holds what it shows and runs only itself; names of a file never become markup."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re
from pathlib import Path

import pytest
from etx_devtools.report import document, page
from etx_devtools.report.data import LONGEST
from etx_devtools.report.overlay import overlay
from etx_devtools.report.stages import read_log
from etx_schema import EtxError, cli, read_pte, write_pte
from hypothesis import given
from hypothesis import strategies as st
from report_programs import HOSTILE, chain_of, hostile, log_of

DATA = Path(__file__).parent / "data"
FILES = sorted([*DATA.glob("*.pte"), *DATA.glob("*.bpte")])


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.addresses = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [key for key, _ in attributes if key in ("src", "href")]


def tags_of(text):
    parser = Tags()
    parser.feed(text)
    return parser


def digest(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@pytest.mark.parametrize("words", [("--method", "absent"), ("--inputs", "absent.npy")], ids=str)
def test_options_without_effect_are_refused(words, tmp_path, capsys):
    output = tmp_path / "page.html"
    assert cli.main(["report", str(FILES[0]), "-o", str(output), *words]) == 2
    assert capsys.readouterr().err.startswith(f"etx: {words[0]} goes with --")
    assert not output.exists()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_has_a_page(path):
    text = page(document(path))
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', text)[1]
    assert policy.startswith("default-src 'none';")
    assert digest(re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]) in policy
    assert digest(re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1]) in policy
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    assert data["bytes"] == path.stat().st_size or path.suffix == ".bpte"
    assert sum(len(method["rows"]) for method in data["methods"]) > 0
    assert tags_of(text).addresses == []


def test_names_are_no_markup():
    plain = page(document(chain_of(12, "name", delegated=True)))
    text = page(document(hostile()))
    assert tags_of(text).tags == tags_of(plain).tags
    assert "<img" not in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    assert any(HOSTILE in item for item in data["texts"])
    assert max(map(len, data["texts"])) <= LONGEST


def test_names_of_a_log_are_no_markup():
    name = HOSTILE + "x" * 10_000
    blob = hostile()
    log = log_of(blob, name)["methods"]
    log[f"forward{HOSTILE}"] = log.pop(f"forward{name}")
    found = document(blob, None, None, log)
    (method,) = found["methods"]
    assert [len(method[key]) for key in ("stages", "reasons", "left")] == [3, 1, 1]
    text = page(both(("before.pte", found), found))
    assert "<img" not in text
    assert tags_of(text).tags == tags_of(page(document(chain_of(3)))).tags


def both(before, after):
    changes = {f"forward{HOSTILE}": {"pairs": [0], "changes": [], "count": 0, "weights": []}}
    changes[f"forward{HOSTILE}"]["signature"] = [HOSTILE]
    return after | {"before": before[1], "changes": {"methods": changes, "lines": [HOSTILE]}}


@pytest.mark.parametrize(("count", "most"), [(2000, 500_000), (20_000, 4_000_000)])
def test_a_page_stays_small(count, most):
    assert len(page(document(chain_of(count))).encode()) <= most


def test_stages_lead_to_the_instructions_that_they_made(tmp_path):
    blob = chain_of(3)
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log_of(blob)))
    found = document(blob, {"forward": [0.5] * 3}, None, read_log(str(path), blob))
    (method,) = found["methods"]
    texts = found["texts"]
    name, equation, changed, before, after, removed, added = method["stages"][0]
    assert (texts[name], texts[equation], changed, before, after) == (
        "decompose",
        "f -> g",
        1,
        2,
        3,
    )
    assert [texts[i] for i in removed[0][:3]] == ["aten.f", "", ""]
    assert (removed[0][3:], added[0][3:]) == ([1, [0]], [2, [2]])
    (reason,) = method["reasons"]
    assert [texts[i] for i in reason[:3]] == ["aten.add", "Toy", "it is an addition"]
    assert reason[3:] == [1, [2]]
    assert any(
        line.endswith("outside of delegates: it is an addition.") for line in found["advice"]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "not the JSON"),
        (b"[]", "its format is not"),
        (b'{"format": "etx/stages", "version": 2}', "version 2"),
        (b'{"format": "etx/stages", "version": 1}', "of another file"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, text, message, capsys):
    path = tmp_path / "a.pte"
    path.write_bytes(chain_of(3))
    log = tmp_path / "a.pte.stages.json"
    log.write_bytes(text)
    with pytest.raises(EtxError, match=message):
        read_log(str(log), path.read_bytes())
    page = str(tmp_path / "r.html")
    assert cli.main(["report", str(path), "-o", page]) == 0
    assert "it is left out" in capsys.readouterr().err
    assert cli.main(["report", str(path), "--stages", str(log), "-o", page]) == 2


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda each: (
            st.lists(each)
            | st.dictionaries(
                st.sampled_from(
                    ["stages", "outside", "declined", "removed", "operators", "reasons"]
                ),
                each,
            )
        ),
    )
)
def test_odd_logs_do_no_harm(entry):
    page(document(chain_of(2), None, None, {"forward": entry}))


def test_two_files(tmp_path, capsys):
    one, other, out = (str(tmp_path / name) for name in ("a.pte", "b.pte", "r.html"))
    Path(one).write_bytes(chain_of(30))
    Path(other).write_bytes(chain_of(20))
    assert cli.main(["report", one, other, "-o", out, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["before"]["methods"][0]["name"] == "forward"
    entry = found["changes"]["methods"]["forward"]
    assert entry["pairs"] == list(range(20))
    assert [change[0] for change in entry["changes"]] == ["removed"]
    assert cli.main(["report", one, other, one, "-o", out]) == 2
    assert cli.main(["report", one, other, "--etdump", one, "-o", out]) == 2


def test_rows_say_who_reads_whom():
    (method,) = document(chain_of(3))["methods"]
    assert [row[5] for row in method["rows"]] == [[], [0], [1]]
    assert [row[7] for row in method["rows"]] == [64, 64, 64]


def test_advice():
    found = document(chain_of(30), {"forward": [0.5] * 30})
    assert "forward: 100 % of 15 ms is in 30 aten::add.out outside of delegates." in found["advice"]
    assert any("arena 1 has 4,096 bytes" in line for line in found["advice"])
    bare = document(DATA / "executorch.bpte")["advice"]
    assert any("does not say where instructions come from" in line for line in bare)


def test_command(tmp_path, capsys):
    path = tmp_path / "r.html"
    assert cli.main(["report", str(DATA / "executorch.bpte"), "--run", "-o", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: {path.stat().st_size:,} bytes\n"
    data = json.loads(re.search(r'id="data">(.*?)</script>', path.read_text())[1])
    assert len(data["methods"][0]["times"]) == len(data["methods"][0]["rows"])
    assert sum(data["methods"][0]["times"]) > 0
    dump = str(tmp_path / "r.etdp")
    assert cli.main(["run", str(DATA / "executorch.bpte"), "--etdump", dump]) == 0
    words = ["report", str(DATA / "executorch.bpte"), "--etdump", dump, "-o", str(path)]
    assert cli.main(words) == 0
    data = json.loads(re.search(r'id="data">(.*?)</script>', path.read_text())[1])
    assert all(time > 0 for time in data["methods"][0]["times"])
    (tmp_path / "x.pte").write_bytes(b"nothing of the kind")
    assert cli.main(["report", str(tmp_path / "x.pte"), "-o", str(tmp_path / "x.html")]) == 2
    assert not (tmp_path / "x.html").exists()
    with pytest.raises(EtxError, match="no such file"):
        document(tmp_path / "missing.pte")


MODEL = """
import torch


def net():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 3))
    return model.eval(), (torch.randn(2, 4),)
"""


def test_errors_are_those_of_compare(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("reported_net.py").write_text(MODEL)
    assert cli.main(["compile", "reported_net.py:net", "-o", "m.pte"]) == 0
    pte = read_pte("m.pte")
    for operator in pte.program.execution_plan[0].operators:
        if operator.name == "aten::relu":
            operator.name = "aten::neg"
    write_pte(pte, "wrong.pte")
    found = {}
    for name in ("m", "wrong"):
        words = ["report", f"{name}.pte", "--eager", "reported_net.py:net", "-o", "r.html"]
        assert cli.main(words) == 0
        data = json.loads(re.search(r'id="data">(.*?)</script>', Path("r.html").read_text())[1])
        rows = data["methods"][0]["errors"]
        found[name] = [index for index, made, _, allowed in rows if made > allowed]
    assert found == {"m": [], "wrong": [1]}


def test_overlay_has_a_number_for_each_node(tmp_path, capsys):
    one, other = (str(tmp_path / name) for name in ("a.pte", "nodes.json"))
    Path(one).write_bytes(chain_of(3, delegated=True))
    page = str(tmp_path / "r.html")
    assert cli.main(["report", one, "-o", page, "--overlay", other]) == 0
    found = json.loads(Path(other).read_text())["forward"]
    assert found["results"].keys() == {f"forward_0_{n}" for n in range(4)}
    assert found["results"]["forward_0_2"] == {"value": 64}
    assert [each["stop"] for each in found["gradient"]] == [0, 0.5, 1]
    timed = overlay(one, document(one, {"forward": [1, 2, 3, 4]}))["forward"]
    assert (timed["name"], timed["results"]["forward_0_2"]) == ("time (ms)", {"value": 3})
