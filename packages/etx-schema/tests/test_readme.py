# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import re
from pathlib import Path

from etx_schema import read_pte


def test_readme_runs(tmp_path, monkeypatch, data, capsys):
    text = (Path(__file__).parent.parent / "README.md").read_text()
    code, *_ = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "model.pte").write_bytes((data / "cond.pte").read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert out.startswith("forward 14 values")
    assert "target 'toy' has no operator aten::mul.out" in out
    assert bytes(read_pte("model2.pte").named_data["author"].data) == b"me"
