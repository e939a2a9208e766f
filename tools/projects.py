# SPDX-License-Identifier: BSD-3-Clause
"""The packages of this repository, read from their pyproject.toml files."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: pip carries the same parser
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
GENERATED_FOLDERS = {"build", "dist", "__pycache__"}
NOT_IN_WHEELS = {"tests", "changelog.d", "fuzz"}
COMPILED_AGAINST = {"include", "cmake", "CMakeLists.txt", "fbs"}
OURS = "etx-"  # these names are never asked of an index
REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?")


class PackagingError(Exception):
    """A package, group or file that the tools were asked for does not fit."""


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def split_requirement(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the normalized name and the extras of a requirement."""
    match = REQUIREMENT.match(text)
    if not match:
        raise PackagingError(f"not a requirement: {text!r}")
    extras = (match[2] or "").split(",")
    return normalize(match[1]), tuple(normalize(e.strip()) for e in extras if e.strip())


@dataclass(frozen=True)
class Project:
    """One folder of packages/."""

    name: str
    path: Path
    pyproject: dict[str, Any]

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")

    @property
    def version(self) -> str:
        text = (self.path / "src" / self.module / "_version.py").read_text()
        match = re.search(r'__version__ = "([^"]+)"', text)
        if not match:
            raise PackagingError(f"{self.path}: _version.py holds no __version__")
        return match[1]

    @property
    def native(self) -> bool:
        return "scikit-build" in self.pyproject.get("tool", {})

    @property
    def extras(self) -> list[str]:
        return sorted(self.pyproject["project"].get("optional-dependencies", {}))

    @property
    def build_requires(self) -> list[str]:
        return list(self.pyproject["build-system"]["requires"])

    def requires(self, extras: Iterable[str] = ()) -> list[str]:
        table = self.pyproject["project"]
        optional = {normalize(k): v for k, v in table.get("optional-dependencies", {}).items()}
        found = list(table.get("dependencies", []))
        for extra in extras:
            if extra not in optional:
                raise PackagingError(f"{self.name} has no extra {extra!r}, only {sorted(optional)}")
            found += optional[extra]
        return found

    def group(self, name: str, *, required: bool = True) -> list[str]:
        """Return the requirements of a dependency group, with the groups it includes."""
        groups = self.pyproject.get("dependency-groups", {})
        if name not in groups:
            if required:
                raise PackagingError(f"{self.name} has no group {name!r}, only {sorted(groups)}")
            return []
        found: list[str] = []
        for item in groups[name]:
            found += self.group(item["include-group"]) if isinstance(item, dict) else [item]
        return found

    def python_tag(self, version: tuple[int, int]) -> str:
        """Return the tag of the wheel that serves this interpreter: one build each."""
        cpython = f"cp{version[0]}{version[1]}"
        if not self.native:
            return "py3"
        api = self.pyproject["tool"]["scikit-build"].get("wheel", {}).get("py-api", "")
        if api.startswith("cp3"):
            return f"{api}-abi3" if version >= (3, int(api[3:])) else cpython
        return api or cpython

    def files(self, skip: Iterable[str] = ()) -> Iterator[Path]:
        ignored = GENERATED_FOLDERS | set(skip)
        for folder, folders, names in os.walk(self.path):
            folders[:] = sorted(
                f for f in folders if f not in ignored and not f.startswith(".") and "egg" not in f
            )
            yield from (Path(folder, n) for n in sorted(names) if not n.endswith(".pyc"))

    def digest(self, *, sdist: bool = False, headers: bool = False) -> str:
        """Hash what a wheel is made of, or an sdist, or what siblings compile against."""
        total = hashlib.sha256()
        for path in self.files(() if sdist else NOT_IN_WHEELS):
            relative = path.relative_to(self.path)
            if headers and COMPILED_AGAINST.isdisjoint(relative.parts):
                continue
            total.update(f"{relative.as_posix()}\0".encode())
            total.update(hashlib.sha256(path.read_bytes()).digest())
        return total.hexdigest()


def load_projects(root: Path = ROOT, also: Iterable[Path] = ()) -> dict[str, Project]:
    """Return the packages by name, each after those it needs to build, install or test.

    `also` are folders of more packages, such as those of an example.
    """
    found = {}
    folders = [root / "packages", *also]
    for path in sorted(path for f in folders for path in f.glob("*/pyproject.toml")):
        table = tomllib.loads(path.read_text())
        name = normalize(table["project"]["name"])
        if name != path.parent.name:
            raise PackagingError(f"{path}: the project is named {name}, its folder is not")
        found[name] = Project(name, path.parent, table)
    return {name: found[name] for name in order(found)}


def order(projects: dict[str, Project]) -> list[str]:
    """Sort topologically by run-time and build requirements; extras do not count."""
    done: list[str] = []
    path: list[str] = []

    def visit(name: str) -> None:
        if name in path:
            raise PackagingError(f"packages need each other: {' -> '.join([*path, name])}")
        if name in done:
            return
        path.append(name)
        project = projects[name]
        for text in [*project.requires(), *project.build_requires]:
            needed = split_requirement(text)[0]
            if needed in projects:
                visit(needed)
        done.append(path.pop())

    for name in sorted(projects):
        visit(name)
    return done


@dataclass(frozen=True)
class Closure:
    """What an environment needs: our packages in build order, and requirements of others."""

    ours: list[str]
    others: list[str]
    others_no_deps: list[str]


def close(
    projects: dict[str, Project],
    roots: Iterable[str],
    group: str | None = None,
    *,
    siblings: bool = True,
) -> Closure:
    """Follow the requirements of `roots` and of their dependency group.

    The group `<group>-no-deps` is installed without what it requires. Without `siblings`, packages
    of ours that only the group names stay out.
    """
    pending = list(roots)
    others: dict[str, None] = {}
    bare: dict[str, None] = {}
    for text in list(pending):
        name = split_requirement(text)[0]
        if name not in projects:
            raise PackagingError(f"no package {name!r} here, only {', '.join(projects)}")
        if group:
            bare.update(dict.fromkeys(projects[name].group(f"{group}-no-deps", required=False)))
            for item in projects[name].group(group):
                if split_requirement(item)[0] not in projects:
                    others[item] = None
                elif siblings:
                    pending.append(item)
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while pending:
        name, extras = split_requirement(pending.pop())
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for text in projects[name].requires(extras):
            if split_requirement(text)[0] in projects:
                pending.append(text)
            else:
                others[text] = None
    strays = [item for item in (*others, *bare) if split_requirement(item)[0].startswith(OURS)]
    if strays:
        raise PackagingError(f"required, but not in packages/: {', '.join(strays)}")
    names = {name for name, _ in seen}
    return Closure([name for name in projects if name in names], list(others), list(bare))
