# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import re
from pathlib import Path

from etx_schema import read_pte

HERE = Path(__file__).parent


def test_readme_runs(tmp_path, monkeypatch, capsys):
    codes = re.findall(r"```python\n(.*?)```", (HERE.parent / "README.md").read_text(), re.DOTALL)
    (tmp_path / "model.pte").write_bytes((HERE / "data" / "dynamic_linear.pte").read_bytes())
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in codes:
        exec(compile(code, "README.md", "exec"), names)
    assert "FullyConnected 5" in capsys.readouterr().out
    assert read_pte("model2.pte").program == read_pte("model.pte").program
