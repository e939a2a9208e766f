# SPDX-License-Identifier: BSD-3-Clause
"""Entry points are those that ``importlib.metadata`` finds."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest
from etx_runtime import PluginError, installed, plugins
from etx_schema import EtxWarning


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


def test_entry_points_that_are_not_utf8(tmp_path, monkeypatch):
    distribution(tmp_path, "fine", "[g]\na = os:sep\n")
    distribution(tmp_path, "broken", "")
    (tmp_path / "broken-1.0.dist-info" / "entry_points.txt").write_bytes(b"[g]\n\xff = os:sep\n")
    distribution(tmp_path, "other", "")
    (tmp_path / "other-1.0.dist-info" / "entry_points.txt").write_bytes(b"[x]\n\xff = os:sep\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.warns(EtxWarning, match="entry points of broken cannot be read") as caught:
        assert installed.entry_points("g") == [("a", "os:sep", "fine")]
    assert "reinstall or remove broken" in str(caught[0].message)
    assert len(caught) == 1  # nothing of what does not have the group


def test_metadata_without_a_version(tmp_path, monkeypatch):
    info = tmp_path / "some_plugin.egg-info"
    info.mkdir()
    info.joinpath("entry_points.txt").write_text("[g]\na = os:sep\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert installed.entry_points("g") == [("a", "os:sep", "some-plugin")]


BROKEN = {
    "exits": "raise SystemExit(3)",
    "raises": "raise RuntimeError('no')",
    "syntax": "def",
    "no path": "make = lambda: 3",
    "no library": "make = lambda: '/nowhere/x.so'",
    "fails": "def make(): raise ValueError('no')",
    "no such name": "",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plugin_is_left_out(kind, tmp_path, monkeypatch):
    distribution(tmp_path, "bad", "[etx.plugins]\nbad = broken_plugin:make\n")
    (tmp_path / "broken_plugin.py").write_text(BROKEN[kind])
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "broken_plugin", raising=False)
    monkeypatch.setattr(plugins, "_left_out", {})
    entries = [entry for entry in installed.entry_points("etx.plugins") if entry.name == "bad"]
    monkeypatch.setattr(installed, "entry_points", lambda _: entries)
    with pytest.warns(EtxWarning, match="the plugin 'bad' of bad cannot be loaded"):
        plugins._load_entry_points(None)
    assert "bad" in plugins.left_out()
    with pytest.raises(PluginError, match="take it out of ETX_PLUGINS"):
        plugins._load_entry_points("bad")
