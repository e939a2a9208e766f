# SPDX-License-Identifier: BSD-3-Clause
"""Lets `executorch.…` be imported as `etx_executorch.…`; tests come from the folder of the wheel.

What has no counterpart becomes a class that says so as soon as it is used, so that the other tests
of a file still run.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from etx_executorch import finder

THEIRS, OURS = "executorch", finder.PACKAGE
TESTS = ("test", "tests")


class NotThereError(AttributeError):
    """Something of ExecuTorch that ETX does not have was used."""


class _Absent(type):
    """The type of a name without a counterpart: to be called or looked into is an error."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotThereError(f"ETX has no counterpart of {cls.__module__}.{cls.__qualname__}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotThereError(f"ETX has no counterpart of {cls.__module__}.{cls.__qualname__}")


class _Alias(ModuleType):
    """A module whose names are those of the module of the port."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _resolve(self.__name__, name)
        setattr(self, name, value)
        return value


MORE: dict[str, Any] = {}
"""What a name of ExecuTorch stands for that the port does not have, or has otherwise."""


def _resolve(module: str, name: str) -> Any:
    path = module.removeprefix(THEIRS).lstrip(".")
    if f"{path}.{name}" in MORE:
        return MORE[f"{path}.{name}"]
    if finder.is_module(f"{path}.{name}".lstrip(".")):
        return importlib.import_module(f"{module}.{name}")
    try:
        return finder.find(f"{OURS}.{path}", name)
    except ImportError:
        return _Absent(name, (), {"__module__": module})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `executorch` and all in it: tests in the wheel's folder, the rest in the port."""

    def __init__(self, wheel: Path, material: Collection[str]) -> None:
        self.wheel, self.material = wheel, frozenset(material)

    def find_spec(self, name: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        """Find tests and their material as files of the wheel."""
        parts = name.split(".")
        if parts[0] != THEIRS:
            return None
        if not self.material.isdisjoint(parts):
            path = self.wheel.joinpath(*parts)
            for file in (path.with_suffix(".py"), path / "__init__.py"):
                if file.is_file():
                    return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Make a module of the port."""
        return _Alias(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Leave it empty: names are looked up when they are asked for."""


def install(
    wheel: Path, more: Mapping[str, Any] | None = None, material: Collection[str] = TESTS
) -> None:
    """Let `executorch` mean the port, with the tests of the wheel in the folder `wheel`.

    `more` has values of names such as `backends.xnnpack.utils.configs.get_transform_passes`.
    Packages named as in `material` are those of the wheel, with all in them.
    """
    MORE.update(more or {})
    if not (wheel / THEIRS / "exir").is_dir():
        raise SystemExit(f"{wheel} holds no executorch/exir; give the site-packages of its wheel")
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    sys.meta_path.insert(0, Finder(wheel, material))
