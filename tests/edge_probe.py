# SPDX-License-Identifier: BSD-3-Clause
"""Prints what a package's modules import, as JSON: `python -I edge_probe.py etx_schema`."""

from __future__ import annotations

import ast
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path


def guards_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imports(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the top-level names a file imports for more than its types."""
    for child in ast.iter_child_nodes(node):
        if guards_types(child):
            continue
        if isinstance(child, ast.Import):
            yield from ((alias.name.split(".")[0], child.lineno) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.level == 0 and child.module:
            yield child.module.split(".")[0], child.lineno
        yield from imports(child)


def main(name: str) -> None:
    package = importlib.import_module(name)
    folder = Path(package.__file__ or "").parent
    written: dict[str, str] = {}
    for path in sorted(folder.rglob("*.py")):
        for imported, line in imports(ast.parse(path.read_text())):
            if imported not in sys.stdlib_module_names:
                written.setdefault(imported, f"{path.relative_to(folder.parent)}:{line}")
    missing: dict[str, str] = {}
    modules = []
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if parts[-1] == "__main__" or not all(part.isidentifier() for part in parts):
            continue
        modules.append(module)
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            missing[module] = (error.name or "").split(".")[0]
    print(
        json.dumps(
            {
                "written": written,
                "missing": missing,
                "modules": modules,
                "torch": "torch" in sys.modules,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
