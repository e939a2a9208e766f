# SPDX-License-Identifier: BSD-3-Clause
"""Entry points are those that ``importlib.metadata`` finds."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

from etx_runtime import installed


def test_what_the_standard_library_finds():
    group = "console_scripts"
    expected = sorted((e.name, e.value) for e in metadata.entry_points(group=group))
    assert expected
    assert sorted((e.name, e.value) for e in installed.entry_points(group)) == expected


def distribution(folder: Path, name: str, text: str) -> None:
    """Write the metadata of an installed distribution."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    info.joinpath("METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    info.joinpath("entry_points.txt").write_text(text)


def test_sections_comments_and_the_order_of_the_path(tmp_path, monkeypatch):
    distribution(
        tmp_path / "one", "some_plugin", "[x]\nb=os:sep\n[g]\n# c = d:e\na = os.path:join [z]"
    )
    distribution(tmp_path / "two", "some_plugin", "[g]\na = nowhere:nothing\n")
    path = [str(tmp_path / "one"), str(tmp_path / "two"), str(tmp_path / "none")]
    monkeypatch.setattr(sys, "path", path)
    (found,) = installed.entry_points("g")
    assert found == ("a", "os.path:join [z]", "some-plugin")
    assert found.load()("a", "b") == str(Path("a", "b"))
    assert [(e.name, e.value) for e in metadata.entry_points(group="g")] == [found[:2]]


def test_another_finder_is_asked(tmp_path, monkeypatch):
    distribution(tmp_path, "elsewhere", "[g]\na = os:sep\n")

    class Finder:
        @staticmethod
        def find_spec(*_):
            return None

        @staticmethod
        def find_distributions(context):
            return [metadata.PathDistribution(tmp_path / "elsewhere-1.0.dist-info")]

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert installed.entry_points("g") == [("a", "os:sep", "elsewhere")]
