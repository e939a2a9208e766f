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
from etx_schema import EtxError, cli, read_pte, write_pte
from report_programs import HOSTILE, chain_of, hostile

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


def test_a_page_stays_small():
    assert len(page(document(chain_of(2000))).encode()) <= 500_000


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
