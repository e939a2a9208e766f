# SPDX-License-Identifier: BSD-3-Clause
"""Builds wheels and sdists, each once for the same sources."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from environments import STATE, Environment, link_or_copy, run, say
from projects import ROOT, Project, close, split_requirement

DIST = ROOT / "dist"
BUILD_REQUIREMENTS = ROOT / "tools" / "requirements-build.txt"
OLD_GLIBC = ROOT / "tools" / "old_glibc.c"


class Builder:
    """Builds for one interpreter, in a private environment that is kept."""

    def __init__(self, projects: dict[str, Project], target: Environment) -> None:
        self.projects = projects
        self.target = target
        self.wheels: dict[str, Path] = {}
        self._environment: Environment | None = None

    def wheel(self, name: str) -> Path:
        """Return the wheel of `name`, built if its sources changed."""
        if name not in self.wheels:
            project = self.projects[name]
            needed = [self.projects[n] for n in self._our_build_requires(project)]
            digest = _digest([project.digest(), *(p.digest(headers=True) for p in needed)])
            tag = project.python_tag(self.target.version)
            folder = STATE / "wheels" / f"{name}-{tag}-{digest}"
            if not folder.exists():
                self._build(project, tag, folder)
            self.wheels[name] = next(folder.glob("*.whl"))
        return self.wheels[name]

    def sdist(self, name: str) -> Path:
        project = self.projects[name]
        folder = STATE / "sdists" / f"{name}-{_digest([project.digest(sdist=True)])}"
        if not folder.exists():
            self._run_build(project, "--sdist", folder)
        return next(folder.glob("*.tar.gz"))

    def publish(self, names: Iterable[str], *, sdist: bool = False) -> list[Path]:
        """Put the files of `names` into dist/, replacing older builds of the same tag."""
        DIST.mkdir(exist_ok=True)
        placed = []
        for name in names:
            wheel = self.wheel(name)
            python, abi = wheel.stem.split("-")[2:4]
            sources = [(wheel, f"{self.projects[name].module}-*-{python}-{abi}-*.whl")]
            if sdist:
                sources.append((self.sdist(name), f"{self.projects[name].module}-*.tar.gz"))
            for source, older in sources:
                for path in DIST.glob(older):
                    path.unlink()
                link_or_copy(source, DIST / source.name)
                placed.append(DIST / source.name)
        return placed

    def _our_build_requires(self, project: Project) -> list[str]:
        names = [split_requirement(text)[0] for text in project.build_requires]
        return [name for name in names if name in self.projects]

    def _rare_build_requires(self, project: Project) -> list[str]:
        """Return what only some packages build with: torch is large, and installed when needed."""
        lines = BUILD_REQUIREMENTS.read_text().splitlines()
        always = {split_requirement(line)[0] for line in lines if not line.startswith("#")}
        known = always | self.projects.keys()
        return [text for text in project.build_requires if split_requirement(text)[0] not in known]

    def prepared(self, project: Project) -> Environment:
        """Return the environment that builds, with what of ours the package is built with."""
        ours = self._our_build_requires(project)
        environment = self._build_environment()
        if ours:
            closure = close(self.projects, ours)
            environment.install_wheels({name: self.wheel(name) for name in closure.ours})
            environment.install_others([*closure.others, *self._rare_build_requires(project)])
        return environment

    def _build(self, project: Project, tag: str, folder: Path) -> None:
        say(f"building {project.name} {project.version} ({tag})")
        start = time.monotonic()
        self.prepared(project)
        self._run_build(project, "--wheel", folder, tag)
        say(f"built {next(folder.iterdir()).name} in {time.monotonic() - start:.0f} s")

    def _run_build(self, project: Project, kind: str, folder: Path, tag: str = "") -> None:
        environment = self._build_environment()
        partial = folder.with_suffix(f".{os.getpid()}")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        settings = variables(environment)
        command = [environment.python, "-m", "build", kind, "--no-isolation"]
        if project.native and kind == "--wheel":
            kept = STATE / "native" / f"{project.name}-{tag}-{_digest([])}"
            command.append(f"-Cbuild-dir={kept}")
        try:
            run([*command, "--skip-dependency-check", "-o", partial, project.path], env=settings)
            if kind == "--wheel" and project.native:
                state_platform(project, environment, partial, settings)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        partial.rename(folder)
        _forget_old(folder)

    def _build_environment(self) -> Environment:
        if self._environment is None:
            version = ".".join(map(str, self.target.version))
            made = Environment.create(STATE / f"venv-{version}", self.target.python)
            state = made.state()
            digest = hashlib.sha256(BUILD_REQUIREMENTS.read_bytes()).hexdigest()
            if state.get("+build") != digest:
                say("installing the build requirements")
                made.pip("install", "-r", BUILD_REQUIREMENTS)
                made.remember(state | {"+build": digest})
            self._environment = made
        return self._environment


def _forget_old(folder: Path, keep: int = 4) -> None:
    """Remove the builds of the same package and tag that were used longest ago."""
    prefix = folder.name.rsplit("-", 1)[0]
    builds = [p for p in folder.parent.iterdir() if p.name.rsplit("-", 1)[0] == prefix]
    for path in sorted(builds, key=lambda p: p.stat().st_mtime)[:-keep]:
        shutil.rmtree(path, ignore_errors=True)


def _digest(parts: list[str]) -> str:
    flags = [os.environ.get(name, "") for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS")]
    tools = [BUILD_REQUIREMENTS.read_text(), OLD_GLIBC.read_text()]
    return hashlib.sha256("\0".join(parts + flags + tools).encode()).hexdigest()[:16]


def variables(environment: Environment) -> dict[str, str]:
    """Return the variables of a build: the environment's tools first, ccache when it is there.

    On Linux the C++ library is linked in and newer functions of the C library are avoided.
    """
    settings = dict(os.environ)
    settings["PATH"] = f"{environment.python.parent}{os.pathsep}{settings.get('PATH', '')}"
    settings.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
    settings.setdefault("SOURCE_DATE_EPOCH", "315532800")
    if shutil.which("ccache"):
        settings.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
        settings.setdefault("CMAKE_C_COMPILER_LAUNCHER", "ccache")
    if sys.platform == "linux" and platform.machine() == "x86_64":
        linked = [_old_glibc(), "-lm", "-ldl", "-lpthread", "-static-libstdc++"]
        linked += ["-Wl,--exclude-libs,ALL", settings.get("LDFLAGS", "")]
        settings["LDFLAGS"] = " ".join(map(str, linked)).strip()
    return settings


def _old_glibc() -> Path:
    """Return the object that makes a library loadable by older C libraries than this one."""
    made = STATE / f"old_glibc-{hashlib.sha256(OLD_GLIBC.read_bytes()).hexdigest()[:8]}.o"
    if not made.exists():
        compiler = os.environ.get("CC", "cc")
        run([compiler, "-O2", "-fPIC", "-fno-builtin", "-c", OLD_GLIBC, "-o", made])
    return made


def state_platform(
    project: Project, environment: Environment, folder: Path, settings: dict[str, str]
) -> None:
    """Replace the tag of this machine by the oldest manylinux the library's symbols allow.

    `tool.auditwheel.exclude` names the libraries that another package brings into the process.
    """
    if not sys.platform.startswith("linux"):
        return
    wheel = next(folder.glob("*.whl"))
    command = [environment.python, "-m", "auditwheel", "repair", "--only-plat"]
    for library in project.pyproject["tool"].get("auditwheel", {}).get("exclude", ()):
        command += ["--exclude", library]
    run([*command, "--wheel-dir", folder / "repaired", wheel], env=settings)
    repaired = next((folder / "repaired").glob("*.whl"))
    wheel.unlink()
    repaired.rename(folder / repaired.name)
    (folder / "repaired").rmdir()
