# SPDX-License-Identifier: BSD-3-Clause
"""What a script imports from a package, or from a file beside it, is there.

Scripts that only a person starts (benchmarks, sessions by hand) are read like all others.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LISTED = subprocess.run(
    ["git", "ls-files", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True
).stdout.split()
ANYTHING = "*"
TAKEN = {"__init__", *sys.stdlib_module_names}


def modules_under(root: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted((*root.rglob("*.pyi"), *root.rglob("*.py"))):
        parts = (root.name, *path.relative_to(root).with_suffix("").parts)
        yield ".".join(part for part in parts if part != "__init__"), path


PACKAGES = {
    name: path
    for root in sorted(ROOT.glob("packages/*/src/*"))
    for name, path in modules_under(root)
}


@cache
def names_of(path: Path) -> frozenset[str]:
    """Return what a module defines at its top; ANYTHING is among them where it cannot be read.

    What `__getattr__` finds is in `__all__`, if there is one.
    """
    body = ast.parse(path.read_text()).body
    names = frozenset(defined(body))
    return names - {ANYTHING} | listed if (listed := exported(body)) else names


def exported(body: list[ast.stmt]) -> set[str]:
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Tuple):
            named = [ast.unparse(target) for target in node.targets] == ["__all__"]
            if named and not any(isinstance(each, ast.Starred) for each in node.value.elts):
                return set(ast.literal_eval(node.value))
    return set()


def defined(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield ANYTHING if node.name == "__getattr__" else node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            yield from (n.id for n in ast.walk(node) if isinstance(n, ast.Name))
        else:
            for field in ("body", "orelse", "finalbody"):
                yield from defined(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                yield from defined(handler.body)
            stored = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
            yield from (n.id for n in stored if isinstance(n.ctx, ast.Store))


def absent(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Give `line: module.name` for each name that a script uses and its module does not define."""
    tree = ast.parse(path.read_text())
    called = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            called |= {a.asname or a.name: a.name for a in node.names if a.name in known}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module in known:
            for alias in node.names:
                if alias.name != "*" and not has(str(node.module), alias.name, known):
                    yield f"{node.lineno}: {node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = called.get(node.value.id)
            if module and not has(module, node.attr, known):
                yield f"{node.lineno}: {module}.{node.attr}"


def has(module: str, name: str, known: Mapping[str, Path]) -> bool:
    names = names_of(known[module])
    whole = f"{module}.{name}"
    inside = any(other == whole or other.startswith(f"{whole}.") for other in known)
    return inside or name in names or ANYTHING in names or name.startswith("__")


@pytest.mark.parametrize("script", LISTED)
def test_imported_names_exist(script: str) -> None:
    path = ROOT / script
    assert list(absent(path, {**beside(path), **PACKAGES})) == []


def beside(path: Path) -> dict[str, Path]:
    """Return what a script can import by a plain name: first of its folder, then its package's.

    `alone.py` of a package runs beside the repository's own tests.
    """
    parts = path.relative_to(ROOT).parts
    home = ROOT.joinpath(*parts[:2]) if parts[0] == "packages" else path.parent
    home = ROOT / "tests" if path.name == "alone.py" else home
    listed = [ROOT / name for name in LISTED]
    near = [p for p in listed if p.is_relative_to(home) and "src" not in p.parts]
    near.sort(key=lambda p: p.parent == path.parent)
    return {other.stem: other for other in near if other.stem not in TAKEN}


def test_an_absent_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text("try:\n    import numpy as np\nexcept E:\n    np = None\n")
    script = tmp_path / "script.py"
    script.write_text("import tools as t\nfrom tools import np, gone\nt.np, t.lost\n")
    found = list(absent(script, {"tools": tmp_path / "tools.py"}))
    assert found == ["2: tools.gone", "3: tools.lost"]


def test_an_absent_name_of_a_lazy_module_is_found(tmp_path: Path) -> None:
    lazy = "def __getattr__(name):\n    return 1\n"
    (tmp_path / "lazy.py").write_text(f"{lazy}__all__ = ['made']\n")
    (tmp_path / "open.py").write_text(lazy)
    script = tmp_path / "script.py"
    script.write_text("from lazy import made, gone\nfrom open import whatever\n")
    known = {name: tmp_path / f"{name}.py" for name in ("lazy", "open")}
    assert list(absent(script, known)) == ["1: lazy.gone"]
