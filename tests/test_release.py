# SPDX-License-Identifier: BSD-3-Clause
"""A release raises one version and collects one changelog, in a repository made here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import release
from projects import PackagingError, Project, load_projects


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    folder = tmp_path / "packages" / "etx-a"
    (folder / "src" / "etx_a").mkdir(parents=True)
    (folder / "changelog.d").mkdir()
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\n[project]\nname = "etx-a"\n'
    )
    (folder / "src" / "etx_a" / "_version.py").write_text('__version__ = "0.1.0"\n')
    (folder / "CHANGELOG.md").write_text("# Changelog\n\n## 0.1.0\n\nFirst.\n")
    (folder / "changelog.d" / "x.added.md").write_text("- Reads files.\n")
    (folder / "changelog.d" / "y.fixed.md").write_text("Writes\nthem again.\n")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    for command in (
        ["init", "-q"],
        ["config", "user.name", "test"],
        ["config", "user.email", "test@example.org"],
        ["add", "."],
        ["commit", "-q", "-m", "first"],
    ):
        subprocess.check_call(["git", "-C", str(tmp_path), *command])
    return load_projects(tmp_path)["etx-a"]


@pytest.mark.parametrize(
    ("part", "version"), [("patch", "0.1.10"), ("minor", "0.2.0"), ("major", "1.0.0")]
)
def test_raises_one_part(part: str, version: str) -> None:
    assert release.raised("0.1.9", part) == version


def test_releases(project: Project) -> None:
    release.release(project, "minor", dry_run=False)
    assert project.version == "0.2.0"
    text = (project.path / "CHANGELOG.md").read_text()
    assert text.index("## 0.2.0") < text.index("- Added: Reads files.") < text.index("## 0.1.0")
    assert "- Fixed: Writes them again." in text
    assert list((project.path / "changelog.d").iterdir()) == []
    assert release.git("tag").split() == ["etx-a-0.2.0"]
    assert release.git("status", "--porcelain") == ""


def test_refuses_when_there_is_nothing_to_say(project: Project) -> None:
    release.release(project, "patch", dry_run=False)
    with pytest.raises(PackagingError, match="nothing to release"):
        release.release(project, "patch", dry_run=False)


def test_refuses_uncommitted_changes(project: Project) -> None:
    (project.path / "new.txt").write_text("x")
    with pytest.raises(PackagingError, match="commit or undo"):
        release.release(project, "patch", dry_run=False)


def test_dry_run_changes_nothing(project: Project) -> None:
    release.release(project, "patch", dry_run=True)
    assert project.version == "0.1.0"
    assert release.git("status", "--porcelain") == ""
