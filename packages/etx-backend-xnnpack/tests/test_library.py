# SPDX-License-Identifier: BSD-3-Clause
"""The plugin is small, shows one symbol and says which XNNPACK is in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import etx_runtime
import pytest
from etx_backend_xnnpack import native
from etx_schema import Target, cli

LIBRARY = Path(native.library_path())
PACKAGE = Path(__file__).parent.parent


def test_size():
    assert LIBRARY.stat().st_size <= 1_500_000


def test_exports_one_symbol():
    table = subprocess.check_output(["nm", "-D", "--defined-only", LIBRARY], text=True)
    assert [line.split()[-1] for line in table.splitlines()] == ["etx_plugin_v1"]


def test_needs_only_the_c_library():
    table = subprocess.check_output(["readelf", "-d", LIBRARY], text=True)
    needed = re.findall(r"\(NEEDED\).*\[([^\]]+)\.so[^\]]*\]", table)
    assert set(needed) <= {"libc", "libm", "libpthread", "ld-linux-x86-64", "ld-linux-aarch64"}


def test_version_is_that_of_the_sources(capsys):
    sources = (PACKAGE / "cmake" / "XnnpackSources.cmake").read_text()
    date, commit = re.findall(r'set\(ETX_XNNPACK_(?:DATE|COMMIT) "([^"]+)"\)', sources)
    assert f"{date} ({commit})" == native.xnnpack_version()
    assert f"(XNNPACK {date} {commit})".encode() in LIBRARY.read_bytes()
    for words in (["--version"], ["check", "--version"]):
        with pytest.raises(SystemExit):
            cli.main(words)
        assert f"XNNPACK {date} ({commit})" in capsys.readouterr().out


def test_plugin_and_target_are_installed():
    (entry,) = entry_points(group="etx.plugins", name="etx-backend-xnnpack")
    assert entry.load()() == os.fspath(LIBRARY)
    assert Target.load("xnnpack").backends == ("XnnpackBackend",)
    etx_runtime.load(next((Path(__file__).parent / "data").glob("*.pte")))
    assert ("XnnpackBackend", True) in etx_runtime._native.backends()


LOADED = """
import sys
import etx_runtime
etx_runtime.Runtime.get()
from etx_runtime import plugins
plugins.load_installed()
names = [name for name, _ in plugins.loaded_plugins().values()]
heavy = ("flatbuffers", "etx_schema.api", "torch")
packages = [m for m in sys.modules if m.partition(".")[0] in ("etx_backend_xnnpack", *names)]
print(*sorted(packages), *(m for m in heavy if m in sys.modules))
"""


def test_finding_the_plugin_imports_nothing_else():
    done = subprocess.run(
        [sys.executable, "-I", "-c", LOADED], check=True, capture_output=True, text=True
    )
    own = "etx_backend_xnnpack"
    assert done.stdout.split() == [own, f"{own}._version", f"{own}.native"]
