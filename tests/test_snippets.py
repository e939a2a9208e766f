# SPDX-License-Identifier: BSD-3-Clause
"""The runner of snippets runs all of a page, and fails when the page is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import snippets
from snippets import blocks, etx_words, matches, run_page

PAGE = """
```python
x = 20
```
prose
```python
# file: made.py
print(22)
```
```console
$ python made.py
22
$ echo one \\
    two
one ...
```
```python
assert x == 20
```
```sh
exit 1
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "page.md"


def test_runs_blocks_in_order(page: Path) -> None:
    page.write_text(PAGE)
    assert run_page(page) == 4


@pytest.mark.parametrize("change", [("assert x == 20", "assert x == 21"), ("\n22\n", "\n23\n")])
def test_fails_when_the_page_is_wrong(page: Path, change: tuple[str, str]) -> None:
    page.write_text(PAGE.replace(*change))
    with pytest.raises(AssertionError, match=r"the block at line \d+ fails"):
        run_page(page)


def test_fails_when_a_command_fails(page: Path) -> None:
    page.write_text("```console\n$ false\n```\n")
    with pytest.raises(AssertionError):
        run_page(page)


def test_knows_where_a_block_is() -> None:
    assert [block.line for block in blocks(PAGE)] == [3, 7, 11, 18, 21]


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a ... c", "a b\nb c", True),
        ("a", "a  \n", True),
        ("a", "a b", False),
        ("...", "", True),
    ],
)
def test_compares_output(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) is same


def test_copies_files_of_the_repository_into_folders(page: Path) -> None:
    (page.parent / "given.py").write_text("seven = 7\n")
    page.write_text(
        "<!-- file: package/part.py = given.py -->\n"
        "```python\nfrom package.part import seven\nassert seven == 7\n```\n"
    )
    assert run_page(page) == 1


def test_a_server_runs_each_page_in_a_process_of_its_own(tmp_path: Path) -> None:
    """With the modules imported; an `etx` is run by no shell and ends no page."""
    texts = {
        "first": "```python\nimport sys\nassert 'fractions' in sys.modules\nsys.shared = 1\n```\n",
        "second": "```python\nimport sys\nassert not hasattr(sys, 'shared')\n```\n",
        "wrong": "```python\nassert 1 == 2\n```\n",
        "absent": "```console\n$ etx show a.pte\n```\n",
    }
    command = [sys.executable, "-I", snippets.__file__, "--serve", "fractions"]
    answers = {}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for name, text in texts.items():
            page, printed = tmp_path / f"{name}.md", tmp_path / name
            page.write_text(text)
            printed.touch()
            print(json.dumps([[str(page)], str(printed)]), file=server.stdin, flush=True)
            answers[name] = (server.stdout.readline().strip(), printed.read_text())
    assert answers["first"] == ("0", "first.md: 1 blocks ran\n")
    assert answers["second"] == ("0", "second.md: 1 blocks ran\n")
    assert answers["wrong"][0] == answers["absent"][0] == "1"
    assert "wrong.md, the block at line 2 fails" in answers["wrong"][1]
    assert "$ etx show a.pte" in answers["absent"][1]


def test_what_is_for_a_shell() -> None:
    assert etx_words("etx show --json a.pte\n") == ["show", "--json", "a.pte"]
    for command in ("etx show a.pte | wc", "etx show $X", "etx show *.pte", "python -m etx show"):
        assert etx_words(command) is None
