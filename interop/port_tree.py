# SPDX-License-Identifier: BSD-3-Clause
"""Compare the tree of `etx_executorch` with ExecuTorch's; prints what does not fit as JSON."""

from __future__ import annotations

import importlib
import json
from types import ModuleType

from etx_executorch.finder import EVERYTHING, find
from etx_executorch.names import MOVED, NAMES


def names_of(module: ModuleType) -> list[str]:
    """List what a module of ExecuTorch defines or hands on."""
    return [name for name, value in vars(module).items() if name[0] != "_"]


def main() -> None:
    """Look up every name of either side on the other."""
    unknown, errors, sentences = [], [], 0
    for path, rows in NAMES.items():
        theirs = importlib.import_module(f"executorch.{path}")
        unknown += [
            f"{path}.{name}"
            for name in rows
            if name not in (EVERYTHING, *MOVED.get(path, ())) and not hasattr(theirs, name)
        ]
        for name in names_of(theirs):
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
