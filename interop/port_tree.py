# SPDX-License-Identifier: BSD-3-Clause
"""Compare the tree of `etx_executorch` with ExecuTorch's; prints what does not fit as JSON."""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import executorch
from etx_executorch.finder import EVERYTHING, find
from etx_executorch.names import MOVED, NAMES


def names_of(path: str) -> list[str]:
    """List what a module of ExecuTorch defines or hands on; one that needs more is read."""
    try:
        return list(vars(importlib.import_module(f"executorch.{path}")))
    except ModuleNotFoundError:
        return list(written(Path(executorch.__path__[0], *path.split("."))))


def written(module: Path) -> Iterator[str]:
    """List the names at the top of a module's source."""
    file = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((name.asname or name.name).partition(".")[0] for name in node.names)
        elif isinstance(node, ast.Assign):
            yield from (at.id for at in node.targets if isinstance(at, ast.Name))


def main() -> None:
    """Look up every name of either side on the other."""
    unknown, errors, sentences = [], [], 0
    listed = {path: names_of(path) for path in NAMES}  # theirs first: they register operators
    for path, rows in NAMES.items():
        theirs = listed[path]
        unknown += [
            f"{path}.{name}"
            for name in rows
            if name not in (EVERYTHING, *MOVED.get(path, ())) and name not in theirs
        ]
        for name in (name for name in theirs if name[0] != "_"):
            try:
                find(f"etx_executorch.{path}", name)
            except ImportError as error:
                sentences += 1
                if len(str(error).splitlines()) != 1 or f"{path}.{name}:" not in str(error):
                    errors.append(f"{path}.{name}: {error}")
            except Exception as error:
                errors.append(f"{path}.{name}: {type(error).__name__}: {error}")
    print(json.dumps({"unknown": unknown, "errors": errors, "sentences": sentences}))


if __name__ == "__main__":
    main()
