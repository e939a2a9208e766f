# SPDX-License-Identifier: BSD-3-Clause
"""The compiler's layers: what a module imports, lazily or for its types too, lies no higher."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import etx_exir

ROOT = Path(etx_exir.__file__).parent
LAYERS = (
    "ir",
    "analysis",
    "integer",
    "narrow",
    "passes",
    "lower",
    "target",
    "delegation",
    "plan",
    "emit",
    "top",
)
OUTSIDE = {"errors": "ir", "progress": "ir", "config": "ir", "partitioners": "delegation"}
"""Names that users import lie in no folder of their layer."""


def name_of(path: Path) -> str:
    parts = ("etx_exir", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(part for part in parts if part != "__init__")


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in PATHS else str(node.module) for name in names)


def layer_of(name: str) -> int:
    first = (*name.split("."), "")[1]
    return LAYERS.index(OUTSIDE.get(first, first if first in LAYERS else "top"))


PATHS = {name_of(path): path for path in ROOT.rglob("*.py")}
IMPORTS = {name: set(imported(path)) & PATHS.keys() for name, path in PATHS.items()}


def test_every_layer_is_there():
    assert {layer_of(name) for name in PATHS} == set(range(len(LAYERS)))
    assert sum(map(len, IMPORTS.values())) > 300


def test_imports_go_downward():
    edges = ((name, other) for name, others in IMPORTS.items() for other in others)
    assert [edge for edge in edges if layer_of(edge[0]) < layer_of(edge[1])] == []


def test_there_is_no_circle():
    assert list(TopologicalSorter(IMPORTS).static_order())


def test_a_folder_is_read_at_a_glance():
    folders = {path.parent for path in ROOT.rglob("*.py")}
    assert {f.name: n for f in folders if (n := len(list(f.glob("*.py")))) > 25} == {}
