# SPDX-License-Identifier: BSD-3-Clause
"""Each package imports and works with what it declares, and with nothing else."""

from __future__ import annotations

import json

import pytest
from conftest import ROOT, environment
from works import WORKS

from projects import Project, load_projects, split_requirement

PROJECTS = load_projects(ROOT)
EDGES: dict[str, set[str]] = {
    "etx-schema": {"flatbuffers", "numpy"},
    "etx-exir": {"torch", "networkx", "numpy", "etx-schema"},
    "etx-quant": {"torch", "torchao"},
    "etx-runtime": {"etx-schema", "numpy"},
    "etx-kernels-portable": {"etx-runtime"},
    "etx-backend-xnnpack": {"etx-runtime"},
    "etx-backend-arm": {"etx-runtime"},
    "etx-devtools": {"etx-schema", "etx-runtime"},
    "etx-executorch": set(),
}
AOT = {
    "etx-backend-xnnpack": {"etx-exir", "etx-quant"},
    "etx-backend-arm": {"etx-exir", "etx-quant", "ethos-u-vela"},
    "etx-devtools": {"etx-exir"},
    "etx-executorch": {"etx-exir"},
}
IMPORT_NAMES = {"ethos-u-vela": "ethosu"}
HANDED_OUT = {"torch": {"sympy"}}  # required by it, and part of what its interfaces return
TORCHLESS = {"etx-schema", "etx-runtime", "etx-kernels-portable"}


def names(requirements: list[str]) -> set[str]:
    return {split_requirement(text)[0] for text in requirements}


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


def test_all_packages_are_here() -> None:
    assert set(PROJECTS) == set(EDGES)


@pytest.mark.parametrize("name", EDGES)
def test_declares_no_edge_outside_the_table(name: str) -> None:
    project = PROJECTS[name]
    assert names(project.requires()) <= EDGES[name]
    assert names(project.requires([e for e in project.extras if e == "aot"])) <= EDGES[
        name
    ] | AOT.get(name, set())


@pytest.mark.parametrize("name", EDGES)
def test_pins_siblings_by_range(name: str) -> None:
    project = PROJECTS[name]
    for text in project.requires(project.extras):
        if split_requirement(text)[0] in PROJECTS:
            assert ">=" in text, text
            assert "<" in text, text
            assert "==" not in text, text


@pytest.mark.parametrize("name", EDGES)
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


@pytest.mark.parametrize("name", EDGES)
def test_works_with_only_what_it_declares(name: str) -> None:
    environment(f"edge-{name}", name).python("-c", WORKS[name], cwd=ROOT / "tests")


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
