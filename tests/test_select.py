# SPDX-License-Identifier: BSD-3-Clause
"""`etx select`: a library with what files use gives their bits, is small, names what it lacks."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Environment, environment
from family_budgets import MOST_BYTES as MOST_BYTES_OF
from family_budgets import MOST_OF_ALL

SOURCES = ROOT / "packages" / "etx-kernels-portable"
MOBILENET = ("add.out", "convolution.out", "hardtanh.out", "linear.out", "mean.out")
MOST_BYTES = 60_000
DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64"),
)
EXPORT = """
import torch
from etx_exir import to_edge

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2)
        self.depthwise = torch.nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        x = torch.nn.functional.relu6(self.conv(x))
        x = x + self.depthwise(x)
        return self.head(x.mean((2, 3))).softmax(-1)

torch.manual_seed(0)
image = torch.rand(1, 3, 32, 32)
for name, net, inputs in (
    ("net", Net(), (image,)),
    ("double", Net().double(), (image.double(),)),
    ("half", Net().half(), (image.half(),)),
    ("last", Net(), (image.contiguous(memory_format=torch.channels_last),)),
    ("sine", torch.nn.GELU(), (image,)),
):
    to_edge(torch.export.export(net.eval(), inputs)).to_executorch().save(name + ".pte")
"""
RUN = """
import sys
import etx_runtime
import numpy as np
if len(sys.argv) > 2:
    etx_runtime.Runtime.get().load_plugin(sys.argv[2])
x = np.random.default_rng(0).random((1, 3, 32, 32))
x = x.astype({"double": np.float64, "half": np.float16}.get(sys.argv[1][:-4], np.float32))
try:
    print(np.asarray(etx_runtime.load(sys.argv[1])(x)).tobytes().hex())
except etx_runtime.LoadError as error:
    print(error)
"""
FAMILIES = """
include(@native@/reached_sources.cmake)
file(GLOB_RECURSE helpers @native@/*.cpp)
file(READ @native@/families.h families)
string(REGEX MATCHALL " X[(][a-z0-9_]+" families "${families}")
list(TRANSFORM families REPLACE " X." "")
list(JOIN families "|" names)
list(FILTER helpers EXCLUDE REGEX "/ops/[a-z]+/(${names})[.]cpp$")
foreach(family IN LISTS families)
  file(GLOB source RELATIVE @native@ @native@/ops/*/${family}.cpp)
  set(sources @native@/${source} ${helpers})
  etx_keep_reached(sources ${source})
  message("${family};${sources}")
endforeach()
"""


@pytest.fixture(scope="module")
def host() -> Environment:
    tools = ("torch==2.13.0", "cmake>=3.25", "ninja>=1.11")
    return environment("select", "etx-exir", "etx-kernels-portable", others=tools)


@pytest.fixture(scope="module")
def folder(host: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("select")
    host.python("-W", "ignore", "-c", EXPORT, cwd=folder)
    return folder


def select(host: Environment, folder: Path, *arguments: object) -> str:
    """Call the command with the environment's own build tools."""
    done = host.run("etx", "select", *arguments, "--sources", SOURCES, cwd=folder, PATH=path(host))
    return done.stdout + done.stderr


def path(host: Environment) -> str:
    return f"{host.bin}:/usr/local/bin:/usr/bin:/bin"


def test_gives_the_bits_of_the_whole_library(host: Environment, folder: Path) -> None:
    files = ("net.pte", "double.pte")
    printed = select(host, folder, *files, "-o", "own", "--plugin", "--level", "base")
    assert printed.startswith("own: 6 operators in float32, float64\n"), printed
    device = environment("bare", "etx-runtime")
    plugin = folder / "own" / "etx_kernels_portable.so"
    for file in files:
        selected = device.python("-c", RUN, file, plugin, cwd=folder)
        whole = host.python("-c", RUN, file, ETX_KERNELS_ISA="base", cwd=folder)
        assert len(whole) > 20
        assert selected == whole, file

    missing = device.python("-c", RUN, "sine.pte", plugin, cwd=folder)
    assert "add with `etx select --operator aten::gelu.out`" in missing
    other = device.python("-c", RUN, "half.pte", plugin, cwd=folder)
    assert "left out by etx select: --dtype float16" in other
    other = device.python("-c", RUN, "last.pte", plugin, cwd=folder)
    assert "left out by etx select: --dim-orders" in other


def test_is_small(host: Environment, folder: Path) -> None:
    named = [word for name in MOBILENET for word in ("--operator", f"aten::{name}")]
    options = ("--dtype", "float32", "--static", "--optimize=-Os", "--level", "base", "--json")
    document = json.loads(select(host, folder, "-o", "small", *named, *options))
    assert 20_000 < sum(row["code"] for row in document["sizes"].values()) <= MOST_BYTES
    operators = document["operator_sizes"]
    assert sorted(operators) == [f"aten::{name}" for name in MOBILENET]
    assert all(row["own"] < row["all"] for row in operators.values())
    parts = sum(row["own"] for row in operators.values()) + document["shared"] + document["rest"]
    assert parts == document["total"]
    by_source = sum(sum(row.values()) for row in document["sizes"].values())
    assert abs(document["total"] - by_source) < by_source / 50

    alone = ("--operator", "aten::linear.out", *options)
    without = json.loads(select(host, folder, "-o", "one", *alone))
    assert without["operator_sizes"]["aten::linear.out"]["own"] <= without["total"]
    expected = operators["aten::linear.out"]["all"]
    assert abs(without["total"] - expected) < expected / 20


def test_every_family_fits_its_budget(host: Environment, folder: Path) -> None:
    table = json.loads((SOURCES / "src" / "etx_kernels_portable" / "etx.json").read_text())
    named = [word for name in table["operators"] for word in ("--operator", name)]
    named += [word for name in DTYPES for word in ("--dtype", name)]
    options = ("--dim-orders", "--static", "--optimize=-Os", "--level", "base", "--json")
    document = json.loads(select(host, folder, "-o", "all", *named, *options))
    check_budgets(document)
    check_reached(host, folder / "all")


def check_reached(host: Environment, folder: Path) -> None:
    """Each family is built with the sources that define what it calls, by `nm`."""
    native = folder / "kernels" / "native"
    (folder / "families.cmake").write_text(FAMILIES.replace("@native@", native.as_posix()))
    done = host.run("cmake", "-P", folder / "families.cmake")
    assert done.returncode == 0, done.stderr
    rows = [line.split(";") for line in done.stderr.splitlines()]
    symbols = symbols_of(folder / "libetx_kernels_portable.a")
    assert len(rows) == len(MOST_BYTES_OF)
    for family, *sources in rows:
        names = {f"{Path(source).name}.o" for source in sources}
        names |= {
            name.replace(".", "_level.", 1) for name in names & {"isa.cpp.o", "integer.cpp.o"}
        }
        elsewhere = set().union(*(symbols[name][1] for name in symbols.keys() - names))
        needed = set().union(*(symbols[name][0] for name in names))
        assert f"{family}.cpp.o" in names
        assert {name for name in needed & elsewhere if "::portable::" in name} == set(), family


def symbols_of(library: Path) -> dict[str, tuple[set[str], set[str]]]:
    """Return by object of a library what it needs and what it alone defines, demangled."""
    nm = ["nm", "-C", "--format=posix", str(library)]
    printed = subprocess.run(nm, check=True, capture_output=True, text=True).stdout
    found: dict[str, tuple[set[str], set[str]]] = {}
    for line in printed.splitlines():
        if member := re.fullmatch(r".*\[(.*)\]:", line):
            needed, defined = found.setdefault(member[1], (set(), set()))
        elif symbol := re.fullmatch(r"(.+) ([A-Za-z])(?: [0-9a-f]+){0,2} *", line):
            if symbol[2] == "U":
                needed.add(symbol[1])
            elif symbol[2].isupper() and symbol[2] not in "VW":
                defined.add(symbol[1])
    return found


def check_budgets(document: dict[str, Any]) -> None:
    """Compare with bounds, which are those of x86-64; each family must have one anywhere."""
    assert sorted(document["families"]) == sorted(MOST_BYTES_OF)
    if platform.machine() != "x86_64":
        return
    found = {name: sum(document["sizes"][f"{name}.cpp"].values()) for name in MOST_BYTES_OF}
    assert {name: size for name, size in found.items() if size > MOST_BYTES_OF[name]} == {}
    assert document["total"] <= MOST_OF_ALL


def test_names_what_a_toolchain_lacks(host: Environment, folder: Path) -> None:
    (folder / "none.cmake").write_text("set(CMAKE_CXX_COMPILER no-such-g++)\n")
    words = ("net.pte", "-o", "crossed", "--static", "--toolchain")
    printed = select(host, folder, *words, "none.cmake")
    assert printed.startswith("etx: the compiler no-such-g++ is not in PATH: install it"), printed
    assert "absent.cmake is not a file" in select(host, folder, *words, "absent.cmake")
    assert not [path.name for path in folder.iterdir() if "crossed" in path.name]


def test_refuses_what_it_cannot_do(host: Environment, folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "cut.pte").write_bytes((folder / "net.pte").read_bytes()[:100])
    before = sorted(folder.iterdir())
    for arguments, problem in (
        (("net.pte", "-o", "mine"), "was not written by etx select"),
        (("cut.pte", "-o", "new"), "cut.pte"),
        (("none.pte", "-o", "new"), "none.pte"),
        (("-o", "new"), "nothing is selected"),
        (("-o", "new", "--operator", "aten::gelu"), "no operator 'aten::gelu'"),
        (("net.pte", "-o", "new", "--dtype", "f32"), "expected a dtype"),
        (("net.pte", "-o", "new", "--static", "--optimize=-Onone"), "failed"),
    ):
        assert problem in select(host, folder, *arguments), arguments
    assert sorted(folder.iterdir()) == before
