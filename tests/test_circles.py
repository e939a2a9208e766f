# SPDX-License-Identifier: BSD-3-Clause
"""No module of a package needs itself: not through others, lazily, or just for its types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGES = sorted(Path(__file__).resolve().parents[1].glob("packages/*/src/*"))


def imports(root: Path) -> dict[str, set[str]]:
    """Return by module, in Python or native, which ones of the same package it imports."""
    files = (*root.rglob("*.py"), *root.rglob("*.pyi"))
    paths = {name_of(path, root): path for path in sorted(files)}
    return {name: set(imported(path, set(paths))) for name, path in paths.items()}


def name_of(path: Path, root: Path) -> str:
    parts = (root.name, *path.relative_to(root).with_suffix("").parts)
    return ".".join(part for part in parts if part != "__init__")


def imported(path: Path, known: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else str(node.module) for name in whole]
        yield from known.intersection(names)


@pytest.mark.parametrize("root", PACKAGES, ids=lambda root: root.name)
def test_no_circle(root: Path) -> None:
    assert list(TopologicalSorter(imports(root)).static_order())


def test_a_circle_is_found(tmp_path: Path) -> None:
    root = tmp_path / "round"
    root.mkdir()
    (root / "__init__.py").write_text("")
    (root / "a.py").write_text("from round import b\n")
    (root / "b.py").write_text("def f():\n    from round.a import g\n")
    with pytest.raises(CycleError):
        list(TopologicalSorter(imports(root)).static_order())
