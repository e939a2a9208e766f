# SPDX-License-Identifier: BSD-3-Clause
"""The snippets of README.md, CONTRIBUTING.md and docs/ run; their links and names are true.

A package's own README runs in that package's test environment (tox.ini).
"""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import ROOT, Environment, environment

import wheels
from projects import load_projects
from snippets import blocks

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
READMES = sorted(ROOT.glob("packages/*/README.md"))
MOST_SECONDS = 300  # of a page


def identity(path: Path) -> str:
    return str(path.relative_to(ROOT))


@contextmanager
def snippets(where: Environment) -> Iterator[Callable[[Path, Path], None]]:
    """Give what runs a page in an environment, in a process that begins with torch imported."""
    script = ROOT / "tools" / "snippets.py"
    with subprocess.Popen(
        [where.bin / "python", "-I", script, "--serve", "torch._dynamo"],
        cwd=where.folder,
        env=where.variables(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:

        def runs(page: Path, folder: Path) -> None:
            printed = folder / "printed"
            printed.touch()
            assert process.stdin is not None
            assert process.stdout is not None
            print(json.dumps([[str(page)], str(printed)]), file=process.stdin, flush=True)
            if not select.select([process.stdout], [], [], MOST_SECONDS)[0]:
                os.killpg(process.pid, signal.SIGKILL)  # and the pages after it fail at once
            assert process.stdout.readline() == "0\n", f"{page}: {printed.read_text()}"

        yield runs


@pytest.fixture(scope="module")
def run_page() -> Iterator[Callable[[Path, Path], None]]:
    """Return what runs a page where everything is installed."""
    everything = environment("docs", *load_projects(ROOT), others=("pytest==9.2.0",))
    with snippets(everything) as run:
        yield run


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_snippets_run(page: Path, run_page: Callable[[Path, Path], None], tmp_path: Path) -> None:
    if any(block.language in ("python", "console") for block in blocks(page.read_text())):
        run_page(page, tmp_path)


def test_the_first_page_runs_in_what_one_line_of_it_installs(tmp_path: Path) -> None:
    page = ROOT / "README.md"
    shells = [block.text for block in blocks(page.read_text()) if block.language == "sh"]
    (line,) = (line for text in shells for line in text.splitlines() if "--venv etx" in line)
    packages = wheels.parse(shlex.split(line)[2:]).install
    with snippets(environment("first-hour", *packages)) as run:
        run(page, tmp_path)


@pytest.mark.parametrize("page", READMES, ids=identity)
def test_readme_has_a_snippet_that_runs(page: Path) -> None:
    found = [block for block in blocks(page.read_text()) if block.language in ("python", "console")]
    assert found, f"{page} shows nothing that runs"


@pytest.mark.parametrize("page", [*PAGES, *READMES], ids=identity)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"(?ms)^```.*?^```", "", page.read_text())
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", [*PAGES, *READMES], ids=identity)
def test_a_reader_can_see_which_files_are_meant(page: Path) -> None:
    hidden = r"<!-- file: (\S+) = (\S+) -->"
    seen = re.sub(r"(?s)<!--.*?-->", "", page.read_text())
    for name, path in re.findall(hidden, page.read_text()):
        if path == page.name:
            continue
        where = "`PYTHONPATH`" if "/" in name else path.removeprefix("../")
        assert where in seen, f"{page.name}: a reader has no {name}, and is not told of {where}"


def test_every_page_is_reached_from_the_first() -> None:
    first = (ROOT / "README.md").read_text()
    pages = [identity(page) for page in PAGES if page.parent.name == "docs"]
    assert [page for page in pages if f"({page})" not in first] == []


def test_the_files_of_each_addition_exist() -> None:
    page = (ROOT / "docs" / "where-things-go.md").read_text()
    sections = re.sub(r"(?ms)^```.*?^```", "", page).split("\n## ")[1:]
    assert len(sections) == 6
    for section in sections:
        named = re.findall(r"`([\w.-]*/[\w./-]*)`", section)
        roots = [ROOT, *(ROOT / name for name in re.findall(r"`(packages/[\w-]+)`", section))]
        for name in named:
            assert any((root / name).exists() for root in roots), (
                f"{section.splitlines()[0]}: {name}"
            )
        assert named


@pytest.mark.parametrize("page", [*PAGES, *READMES], ids=identity)
def test_shell_lines_name_what_exists(page: Path) -> None:
    files = ("aarch64.py", "measured.py", "sweeps.py")
    tasks = [ROOT / "noxfile.py", *(ROOT / "tools" / f for f in files)]
    sessions = {n for f in tasks for n in re.findall(r"^def (\w+)\(session", f.read_text(), re.M)}
    environments = {name.removeprefix("etx-") for name in load_projects(ROOT)}
    for block in blocks(page.read_text()):
        for line in block.text.splitlines() if block.language == "sh" else ():
            words = shlex.split(line, comments=True)
            if words[:2] == ["python3", "noxfile.py"] and words[2] == "-s":
                names = words[3 : words.index("--")] if "--" in words else words[3:]
                assert {name.replace("-", "_") for name in names} <= sessions, line
            elif words[:2] == ["python", "tools/wheels.py"]:
                wheels.parse(words[2:])
            elif words[:2] == ["tox", "-e"]:
                assert words[2] in environments, line


def test_python_is_supported_as_stated() -> None:
    assert sys.version_info >= (3, 10)
    for name, project in load_projects(ROOT).items():
        assert project.pyproject["project"]["requires-python"] in (">=3.10", ">=3.11"), name
