# SPDX-License-Identifier: BSD-3-Clause
"""What `python -m etx_runtime` prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import etx_runtime


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "etx_runtime", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **env}
    )


def test_cmake_dir_holds_the_configuration() -> None:
    folder = Path(run("--cmake-dir").stdout.strip())
    assert folder == Path(etx_runtime.__file__).parent / "cmake"
    assert (folder / "etx_runtime-config.cmake").exists()


def test_plugins_are_listed(plugin: Path) -> None:
    done = run("--plugins", ETX_PLUGINS="", ETX_PLUGIN_PATHS=str(plugin))
    assert done.stdout.strip() == str(plugin)


def test_asks_for_something() -> None:
    done = run()
    assert done.returncode == 2
    assert "--cmake-dir or --plugins" in done.stderr
