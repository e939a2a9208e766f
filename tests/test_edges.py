# SPDX-License-Identifier: BSD-3-Clause
"""Each package imports and works with what it declares, and with nothing else."""

from __future__ import annotations

import json
import re

import pytest
from conftest import ROOT, environment

from projects import Project, load_projects, split_requirement

PROJECTS = load_projects(ROOT)
ROW = re.compile(r"^\| `(etx-[a-z-]+)` \| [^|]+ \| ([^|]+) \|([^|]*)\|$", re.MULTILINE)
EXTRA = re.compile(r"`\[(\w+)\]`: (.*)")
IMPORT_NAMES = {"ethos-u-vela": "ethosu"}
HANDED_OUT = {"torch": {"sympy"}}  # required by it, and part of what its interfaces return
ALONE = "import runpy, sys; sys.path[:0] = ['.']; runpy.run_path(sys.argv[1])"
TORCHLESS = {"etx-schema", "etx-runtime", "etx-kernels-portable"}


def edge(text: str) -> str:
    """Return `etx-schema[cli]` of `etx-schema[cli]>=0.1,<0.2`."""
    name, extras = split_requirement(text)
    return f"{name}[{','.join(extras)}]" if extras else name


def modules(distributions: set[str]) -> set[str]:
    return {IMPORT_NAMES.get(name, name.replace("-", "_")) for name in distributions}


def reachable(project: Project, extras: list[str]) -> set[str]:
    """Return what a package may import: what it requires, through siblings as well."""
    found: set[str] = set()
    pending = project.requires(extras)
    while pending:
        name, more = split_requirement(pending.pop())
        if name not in found:
            found |= {name} | HANDED_OUT.get(name, set())
            if name in PROJECTS:
                pending += PROJECTS[name].requires(more)
    return found


def listed(cell: str) -> set[str]:
    return {name for name in re.split(r", ", cell.strip()) if name not in ("", "nothing")}


def edges(text: str) -> dict[str, dict[str, set[str]]]:
    """Return what README's table says that each package requires: "" and its extras."""
    found = {}
    for name, needs, aot in ROW.findall(text):
        plain, *extras = needs.split("; ")
        found[name] = {"": listed(plain)} | {m[1]: listed(m[2]) for m in map(EXTRA.match, extras)}
        found[name] |= {"aot": listed(aot)} if aot.strip() else {}
    return found


def declared(project: Project) -> dict[str, set[str]]:
    plain = set(map(edge, project.requires()))
    more = {extra: set(map(edge, project.requires([extra]))) - plain for extra in project.extras}
    return {"": plain} | more


def test_the_table_has_all_edges() -> None:
    table = edges((ROOT / "README.md").read_text())
    assert table == {name: declared(project) for name, project in PROJECTS.items()}


@pytest.mark.parametrize("name", PROJECTS)
def test_pins_siblings_by_range(name: str) -> None:
    project = PROJECTS[name]
    for text in project.requires(project.extras):
        if split_requirement(text)[0] in PROJECTS:
            assert ">=" in text, text
            assert "<" in text, text
            assert "==" not in text, text


@pytest.mark.parametrize("name", PROJECTS)
def test_imports_only_what_it_declares(name: str) -> None:
    project = PROJECTS[name]
    probe = ROOT / "tests" / "edge_probe.py"
    found = json.loads(environment(f"edge-{name}", name).python(probe, project.module))
    declared = modules(reachable(project, [])) | {project.module}
    optional = modules(reachable(project, project.extras))
    strays = {k: v for k, v in found["written"].items() if k not in declared | optional}
    assert not strays, f"imported but not declared in {name}: {strays}"
    broken = {k: v for k, v in found["missing"].items() if v not in optional - declared}
    assert not broken, f"these modules do not import with the declared requirements: {broken}"
    assert found["torch"] is ("torch" in reachable(project, []))


@pytest.mark.parametrize("name", PROJECTS)
def test_works_with_only_what_it_declares(name: str) -> None:
    program = PROJECTS[name].path / "tests" / "alone.py"
    environment(f"edge-{name}", name).python("-c", ALONE, program, cwd=ROOT / "tests")


@pytest.mark.parametrize("name", sorted(TORCHLESS))
def test_never_imports_torch(name: str) -> None:
    project = PROJECTS[name]
    both = environment(
        "device-torch", "etx-runtime", "etx-kernels-portable", others=("torch==2.13.0",)
    )
    probe = ROOT / "tests" / "edge_probe.py"
    found = json.loads(both.python(probe, project.module))
    assert "torch" not in found["written"]
    assert found["torch"] is False
