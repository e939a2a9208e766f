# SPDX-License-Identifier: BSD-3-Clause
"""No package that is broken, in any way and group, breaks a command.

A seed draws from the table; `ETX_SWEEP=all` runs the whole.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
from pathlib import Path

import etx_runtime
import pytest
from broken_packages import GROUPS, KINDS, install
from etx_runtime import plugins
from etx_schema import cli
from programs import RELU_SOURCE

COMMANDS = {
    "show": ["show", "net.pte"],
    "show json": ["show", "net.pte", "--json"],
    "check": ["check", "net.pte"],
    "check a target": ["check", "net.pte", "--target", "etx"],
    "targets": ["targets"],
    "a target": ["targets", "etx", "--json"],
    "memory": ["memory", "net.pte"],
    "strip": ["strip", "net.pte", "-o", "out.pte"],
    "run": ["run", "net.pte", "--json"],
    "bench": ["bench", "net.pte", "--iterations", "1", "--json"],
    "compile": ["compile", "model.py:Net", "-o", "out.pte"],
    "backends": ["backends", "--json"],
    "help": ["--help"],
    "nothing": [],
    "version": ["--version"],
}
OWN = {"etx.commands": ("run", "show"), "etx.targets": ("etx",), "etx.plugins": ("etx-kernels",)}
DRAWN = 60
SEED = random.SystemRandom().randrange(10**6)


def cases() -> list[tuple[str, str, str, str]]:
    names = {group: ("bad", *OWN.get(group, ())) for group in GROUPS}
    return [
        (command, group, name, kind)
        for command, group, kind in itertools.product(COMMANDS, GROUPS, KINDS)
        for name in names[group]
    ]


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(RELU_SOURCE)
    assert cli.main(["compile", "model.py:Net", "-o", "net.pte"]) == 0


def call(words: list[str]) -> int:
    if words not in (["--help"], ["--version"]):
        return cli.main(words)
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    return int(stop.value.code or 0)


def check(case: tuple[str, str, str, str], folder: Path, number: int, capsys: object) -> None:
    command, group, name, kind = case
    place = folder / str(number)
    install(place, kind, group, name, f"broken_{number}")
    sys.path.insert(0, str(place))
    plugins._is_done = group != "etx.plugins"
    try:
        code = call(COMMANDS[command])
    finally:
        sys.path.remove(str(place))
        plugins._is_done = True
        plugins._left_out.clear()
    out, err = capsys.readouterr()  # type: ignore[attr-defined]
    assert code == 0, err
    assert "Traceback" not in err
    for line in err.splitlines():
        assert line.startswith("etx: "), err
    if command not in ("help", "nothing", "version", "targets", "backends"):
        assert out


def test_no_broken_package_breaks_a_command(
    net: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    etx_runtime.Runtime.get().operator_registry.operator_names  # noqa: B018
    monkeypatch.setattr(plugins, "load_plugin", _once(plugins.load_plugin))
    monkeypatch.setattr(plugins, "_left_out", {})
    chosen = cases()
    if os.environ.get("ETX_SWEEP") != "all":
        chosen = random.Random(SEED).sample(chosen, DRAWN)
    failures = []
    for number, case in enumerate(chosen):
        try:
            check(case, tmp_path / "packages", number, capsys)
        except Exception as error:
            failures.append(f"{case}: {type(error).__name__}: {error}"[:600])
    assert not failures, f"seed {SEED}, {len(failures)} of {len(chosen)}:\n" + "\n".join(
        failures[:20]
    )


def _once(load: object) -> object:
    """Load only what is not loaded yet: a plugin that works stays."""

    def load_new(path: object) -> object:
        known = plugins.loaded_plugins().get(str(path))
        return known or load(path)  # type: ignore[operator]

    return load_new
