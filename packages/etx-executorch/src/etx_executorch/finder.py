# SPDX-License-Identifier: BSD-3-Clause
"""Makes the modules of the tables: each looks its names up when they are asked for."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from etx_executorch.absent import ABSENT, INTERNAL
from etx_executorch.names import NAMES
from etx_executorch.words import original

__all__ = ["Finder", "absent", "find", "install", "is_module", "place_of"]

PACKAGE = "etx_executorch"
EVERYTHING = "*"
MISSING = "{} needs {}, which is not installed: pip install {}"
INSTALL = {
    "etx_backend_arm": "etx-backend-arm[aot]",
    "etx_backend_xnnpack": "etx-backend-xnnpack[aot]",
    "etx_exir": "etx-exir",
    "etx_quant": "etx-quant",
    "etx_runtime": "etx-runtime etx-kernels-portable",
    "etx_schema": "etx-schema",
    "torch": "torch",
}


def is_module(path: str) -> bool:
    """Tell whether `path`, without the package's name, is a row of the table or holds one."""
    return any(key == path or key.startswith(f"{path}.") for key in NAMES)


def place_of(path: str, name: str) -> str:
    """Return where a name of the module `path` is, `module:attribute`; empty if nowhere."""
    rows = NAMES.get(path, {})
    if name in rows:
        return rows[name]
    return f"{rows[EVERYTHING]}:{name}" if EVERYTHING in rows else ""


def find(module: str, name: str) -> Any:
    """Return what a module of the tree calls `name`; ImportError says what to use instead."""
    if name.startswith("__"):
        raise AttributeError(name)
    path = module.removeprefix(PACKAGE).lstrip(".")
    inner = f"{path}.{name}".lstrip(".")
    if is_module(inner):
        return importlib.import_module(f"{PACKAGE}.{inner}")
    source, _, attribute = place_of(path, original(name)).partition(":")
    if source:
        try:
            return getattr(_load(source, f"{module}.{name}"), attribute)
        except AttributeError:
            pass
    raise absent(inner)


def absent(path: str) -> ImportError:
    """Return the error that says what to use instead of something that ETX does not have."""
    return ImportError(_sentence(path), name=f"{PACKAGE}.{path}")


def _load(source: str, asked: str) -> ModuleType:
    try:
        return importlib.import_module(source)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in INSTALL or error.name != missing:
            raise
        message = MISSING.format(asked, missing, INSTALL[missing])
        raise ModuleNotFoundError(message, name=missing) from error


def _sentence(path: str) -> str:
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        reason = ABSENT.get(".".join(parts[:length]))
        if reason:
            return f"{PACKAGE}.{path}: {reason}"
    return f"{PACKAGE}.{path}: {INTERNAL}"


class Module(ModuleType):
    """A module of the table; a name is found when it is asked for first."""

    def __getattr__(self, name: str) -> Any:
        value = find(self.__name__, name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        path = self.__name__.removeprefix(f"{PACKAGE}.")
        inner = {k[len(path) + 1 :].partition(".")[0] for k in NAMES if k.startswith(f"{path}.")}
        return sorted({*super().__dir__(), *NAMES.get(path, {}), *inner} - {EVERYTHING})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of the tree; a module that ETX does not have is an error that says so."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of the table."""
        package, _, inner = fullname.partition(".")
        if package != PACKAGE or not inner:
            return None
        if is_module(inner):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        raise ModuleNotFoundError(_sentence(inner), name=fullname)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Make a module of the table."""
        path = spec.name.removeprefix(f"{PACKAGE}.")
        return Module(spec.name, f"ExecuTorch's `{path}` over ETX.")

    def exec_module(self, module: ModuleType) -> None:
        """Leave it empty: names are looked up when they are asked for."""
        rows = NAMES.get(module.__name__.removeprefix(f"{PACKAGE}."), {})
        module.__dict__["__all__"] = [n for n in rows if n != EVERYTHING and n[0] != "_"]


def install() -> None:
    """Let the tree be found, after the files of the package itself."""
    if not any(isinstance(item, Finder) for item in sys.meta_path):
        sys.meta_path.append(Finder())
