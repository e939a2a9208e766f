# SPDX-License-Identifier: BSD-3-Clause
"""The folder that `etx select` writes: sources, selection, CMake."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from etx_schema.errors import EtxError
from etx_schema.stopping import scratch_folder, start_child

from etx_kernels_portable import __version__
from etx_kernels_portable.select.selection import Selection

HEADER = "etx_selection.h"
COMPILER = re.compile(r'^set\(CMAKE_CXX_COMPILER "(.+)"\)$', re.MULTILINE)
NOT_FOUND = re.compile(
    r"(?:CMAKE_CXX_COMPILER:\s+(\S+)\s+is\s+not\s+(?:a full path|able|an existing)"
    r"|No CMAKE_CXX_COMPILER could be found)"
)
PARTS = ("CMakeLists.txt", "LICENSE", "native", "src/etx_kernels_portable/_version.py")
PROJECT = """\
# The kernels of etx-kernels-portable {version} that these files use: {files}
# As a part of a project: add_subdirectory(this folder), then link etx_kernels_portable.
cmake_minimum_required(VERSION 3.24)
project(etx_kernels_selected LANGUAGES CXX)

set(ETX_KERNELS_SELECTION "${{CMAKE_CURRENT_LIST_DIR}}/{header}")
set(ETX_KERNELS_FAMILIES {families})
set(ETX_KERNELS_OPTIMIZE {optimize} CACHE STRING "Level of optimisation")
set(ETX_KERNELS_LEVEL "{level}" CACHE STRING "The one instruction-set level to build; empty: all")
option(ETX_KERNELS_STATIC "Build a static library" ON)
if(NOT TARGET etx::headers)
  set(etx_runtime_DIR "{runtime}" CACHE PATH "python -m etx_runtime --cmake-dir")
  if(CMAKE_CROSSCOMPILING AND NOT COMMAND etx_add_plugin)
    add_library(etx_kernels_headers INTERFACE)
    target_include_directories(etx_kernels_headers INTERFACE "${{etx_runtime_DIR}}/../include")
    add_library(etx::headers ALIAS etx_kernels_headers)
    include("${{etx_runtime_DIR}}/EtxPlugin.cmake")
  endif()
endif()
add_subdirectory(kernels)
"""


@contextmanager
def open_sources(given: str | None) -> Iterator[Path]:
    """Give the folder with the library's sources: `given`, unpacked if need be, or a checkout's.

    Errors: EtxError when there is none, or one of another version.
    """
    with scratch_folder() as scratch:
        folder = _unpacked(Path(given), scratch) if given else _checkout()
        version = folder / "src" / "etx_kernels_portable" / "_version.py"
        if not (folder / "native" / "families.h").is_file() or not version.is_file():
            raise EtxError(
                f"{folder} has no native/families.h: expected etx-kernels-portable's sources"
            )
        found = re.search(r'__version__ = "(.*)"', version.read_text(encoding="utf-8"))
        if found is None or found[1] != __version__:
            raise EtxError(
                f"{folder} has version {found[1] if found else '?'} of etx-kernels-portable, and "
                f"{__version__} is installed: give the sources of that one"
            )
        yield folder


def _unpacked(given: Path, scratch: Path) -> Path:
    if given.is_dir():
        return given
    try:
        with tarfile.open(given) as archive:
            archive.extractall(scratch, filter="data")
    except (OSError, tarfile.TarError) as error:
        raise EtxError(f"{given}: expected a folder or a source archive: {error}") from error
    folders = list(scratch.iterdir())
    if len(folders) != 1:
        raise EtxError(f"{given}: expected one folder in the archive, got {len(folders)}")
    return folders[0]


def _checkout() -> Path:
    """Return the folder that this module is developed in."""
    folder = Path(__file__).resolve().parents[3]
    if (folder / "native").is_dir():
        return folder
    raise EtxError(
        "the wheel of etx-kernels-portable holds no sources: get them with `pip download "
        f"--no-deps --no-binary etx-kernels-portable etx-kernels-portable=={__version__}` and "
        "give the archive with --sources"
    )


def write_project(
    folder: Path,
    sources: Path,
    selection: Selection,
    command: str,
    files: list[str],
    **options: str,
) -> None:
    """Write everything that a build needs into `folder`, a new one."""
    for part in PARTS:
        source, target = sources / part, folder / "kernels" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)
    (folder / HEADER).write_text(selection.header(command), encoding="utf-8")
    text = PROJECT.format(
        version=__version__,
        files=", ".join(os.path.basename(file) for file in files),
        header=HEADER,
        families=" ".join(selection.families),
        runtime=runtime_folder(),
        **options,
    )
    (folder / "CMakeLists.txt").write_text(text, encoding="utf-8")


def runtime_folder() -> str:
    """Return what find_package needs."""
    import etx_runtime

    return os.path.join(os.path.dirname(os.path.realpath(etx_runtime.__file__)), "cmake")


def build(folder: Path, *, is_static: bool, toolchain: str | None) -> Path:
    """Build the library in `folder` and return it.

    Errors: EtxError with the end of what the tool printed, or the compiler that is missing.
    """
    if toolchain and not os.path.isfile(toolchain):
        raise EtxError(f"{toolchain} is not a file: --toolchain names a CMake toolchain file")
    work = folder / "build"
    definitions = {
        "CMAKE_BUILD_TYPE": "Release",
        "ETX_KERNELS_STATIC": "ON" if is_static else "OFF",
        "CMAKE_TOOLCHAIN_FILE": os.path.abspath(toolchain) if toolchain else "",
    }
    given = [f"-D{name}={value}" for name, value in definitions.items() if value]
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    _run("cmake", "-S", folder, "-B", work, *generator, *given)
    _run("cmake", "--build", work, "--parallel")
    name = "libetx_kernels_portable.a" if is_static else "etx_kernels_portable.so"
    built = folder / name
    shutil.move(work / "kernels" / name, built)
    return built


def compiler_of(folder: Path) -> str:
    """Return the compiler of a build."""
    (file,) = folder.glob("build/CMakeFiles/*/CMakeCXXCompiler.cmake")
    return str(COMPILER.findall(file.read_text(encoding="utf-8"))[0])


def _run(*command: object) -> None:
    """Run a tool; where people look, the last line that it printed stands there meanwhile."""
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        raise EtxError(f"{words[0]} is not on the path: install it, or build the project elsewhere")
    printed: list[str] = []
    with start_child(words, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            printed.append(line)
            if sys.stderr.isatty():
                print(f"\r{line.strip()[:78]:78}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(f"\r{'':78}\r", end="", file=sys.stderr, flush=True)
    if process.returncode != 0:
        if missing := NOT_FOUND.search("".join(printed)):
            raise EtxError(
                f"the compiler {missing[1] or 'for C++'} is not in PATH: install it, or name "
                "another one with --toolchain"
            )
        raise EtxError(f"{' '.join(words)} failed:\n{''.join(printed[-30:])}")
