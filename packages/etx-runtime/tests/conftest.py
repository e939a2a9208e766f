# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import os
import subprocess
from pathlib import Path

import etx_runtime
import pytest

HERE = Path(__file__).parent
INCLUDE = Path(etx_runtime.__file__).parent / "include"
FLAGS = ["-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden"]
CORE_FLAGS = ["-fno-exceptions", "-fno-rtti"]


def compile_plugin(source: Path, output: Path, *flags: str) -> Path:
    compiler = os.environ.get("CXX", "c++")
    command = [
        compiler,
        *FLAGS,
        *CORE_FLAGS,
        *flags,
        f"-I{INCLUDE}",
        str(source),
        "-o",
        str(output),
    ]
    subprocess.run(command, check=True)
    return output


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of the kernels in tests/plugin."""
    folder = tmp_path_factory.mktemp("plugin")
    return compile_plugin(HERE / "plugin" / "kernels.cpp", folder / "libtest.so")


@pytest.fixture(scope="session")
def runtime(plugin: Path) -> etx_runtime.Runtime:
    """The runtime with only the test kernels."""
    os.environ["ETX_PLUGINS"] = ""
    os.environ.pop("ETX_PLUGIN_PATHS", None)
    instance = etx_runtime.Runtime.get()
    assert instance.load_plugin(plugin) == ("etx-test-plugin", "1.2.3")
    return instance
