# SPDX-License-Identifier: BSD-3-Clause
"""Virtual environments: made once, brought up to date cheaply, never from our names."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from projects import ROOT, PackagingError, split_requirement

STATE = ROOT / ".build"
CONSTRAINTS = ROOT / "constraints.txt"
REPORT_SECONDS = 10.0
POOLED = ("numpy", "torch", "torchao", "scikit-learn")  # unpacked once, then hard-linked
PROBE = """
import json, sys, sysconfig
print(json.dumps({"version": sys.version_info[:2], "prefix": sys.prefix,
                  "base": sys.base_prefix, "purelib": sysconfig.get_path("purelib")}))
"""


def say(text: str) -> None:
    print(f"[wheels] {text}", flush=True)


def run(command: Sequence[str | Path], *, env: dict[str, str] | None = None) -> None:
    """Run with a line now and then while it takes long; when it fails, show all that it printed."""
    words = [str(part) for part in command]
    printed: list[str] = []
    with (
        subprocess.Popen(
            words,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
        _reporting(printed),
    ):
        printed.extend(process.stdout or ())
    if process.returncode:
        shown = " ".join(words)
        raise PackagingError(f"{''.join(printed)}\nexit code {process.returncode}: {shown}")


@contextlib.contextmanager
def _reporting(printed: Sequence[str]) -> Iterator[None]:
    """Say every few seconds what was printed last."""
    ended = threading.Event()
    begin = time.monotonic()

    def report() -> None:
        while not ended.wait(REPORT_SECONDS):
            last = next((line.strip() for line in reversed(printed) if line.strip()), "...")
            say(f"  {time.monotonic() - begin:.0f} s: {last[:100]}")

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join()


@contextlib.contextmanager
def locked(name: str = "lock") -> Iterator[None]:
    """Let one process at a time build; the others wait."""
    STATE.mkdir(exist_ok=True)
    with open(STATE / name, "a+") as file:
        if os.name == "posix":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        else:
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        yield


class Environment:
    """A Python environment we may install into."""

    def __init__(self, python: str | Path) -> None:
        self.python = Path(python)
        found = json.loads(subprocess.check_output([str(python), "-c", PROBE], text=True))
        self.version: tuple[int, int] = tuple(found["version"])
        self.prefix = Path(found["prefix"])
        self._base = Path(found["base"])
        self.site_packages = Path(found["purelib"])
        self._state = self.prefix / "etx-installed.json"

    @classmethod
    def create(cls, folder: Path, python: str | Path = sys.executable) -> Environment:
        """Return the environment in `folder`, made with `python` unless it is there."""
        inside = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        if not inside.exists():
            say(f"environment {shown(folder)}")
            shutil.rmtree(folder, ignore_errors=True)
            run([python, "-m", "venv", "--without-pip", folder])
        made = cls(inside)
        if not (made.site_packages / "pip").exists():
            made._link_pip()
        return made

    def require_private(self) -> None:
        if self.prefix == self._base:
            raise PackagingError(
                f"{self.python} is not a virtual environment; give one: --venv DIR makes it"
            )

    def state(self) -> dict[str, str]:
        return json.loads(self._state.read_text()) if self._state.exists() else {}

    def remember(self, state: dict[str, str]) -> None:
        self._state.write_text(json.dumps(state, indent=1))

    def pip(self, *arguments: str | Path) -> None:
        run([self.python, "-m", "pip", "--disable-pip-version-check", *arguments])

    def install_wheels(self, wheels: dict[str, Path]) -> None:
        """Make our packages in this environment exactly these wheels."""
        state = self.state()
        installed = {k: v for k, v in state.items() if not k.startswith("+")}
        surplus = sorted(set(installed) - set(wheels))
        changed = {k: w for k, w in wheels.items() if installed.get(k) != identity(w)}
        if surplus:
            self.pip("uninstall", "--yes", *surplus)
        if changed:
            say(f"installing {', '.join(changed)}")
            self.pip("install", "--no-deps", "--no-index", "--force-reinstall", *changed.values())
        extra = {k: v for k, v in state.items() if k.startswith("+")}
        self.remember(extra | {k: identity(w) for k, w in wheels.items()})

    def install_others(self, requirements: Iterable[str], *, deps: bool = True) -> None:
        """Install third-party requirements within constraints.txt."""
        chosen = sorted(set(requirements))
        key = "+deps" if deps else "+no-deps"
        constraints = CONSTRAINTS.read_text() if CONSTRAINTS.exists() else ""
        digest = hashlib.sha256(json.dumps([chosen, constraints]).encode()).hexdigest()
        state = self.state()
        if not chosen or state.get(key) == digest:
            return
        names = {split_requirement(item)[0] for item in chosen}
        for name in filter(names.__contains__, POOLED if deps else ()):
            self._link_pool(name)
        say(f"installing {', '.join(chosen)}")
        mode = ["--no-compile"] if deps else ["--no-compile", "--no-deps"]  # imports do it
        bound = ["-c", CONSTRAINTS] if CONSTRAINTS.exists() else []
        self.pip("install", *mode, *bound, *chosen)
        self.remember(state | {key: digest})

    def _link_pip(self) -> None:
        """Give what `venv` installs, which takes seconds: once, then linked."""

        def fill(folder: Path) -> None:
            run([self.python, "-I", "-m", "ensurepip", "--default-pip"])
            shutil.copytree(self.site_packages, folder, copy_function=link_or_copy)

        self._link("pip", "bundled", fill)

    def _link_pool(self, name: str) -> None:
        def fill(folder: Path) -> None:
            say(f"unpacking {name} once for all environments")
            self.pip("install", "--target", folder, "-c", CONSTRAINTS, name)

        digest = hashlib.sha256(CONSTRAINTS.read_bytes()).hexdigest()[:12]
        self._link(name, digest, fill)

    def _link(self, name: str, digest: str, fill: Callable[[Path], None]) -> None:
        """Link what `fill` unpacks into a folder once for all environments of this Python."""
        pool = STATE / "pool" / f"{name}-cp{self.version[0]}{self.version[1]}-{digest}"
        with locked(f"{name}.lock"):
            if not pool.exists():
                partial = pool.with_suffix(".partial")
                shutil.rmtree(partial, ignore_errors=True)
                fill(partial)
                partial.rename(pool)
        for source in pool.iterdir():
            target = self.site_packages / source.name
            if source.name == "bin" or target.exists():
                continue
            if source.is_dir():
                shutil.copytree(source, target, copy_function=link_or_copy)
            else:
                link_or_copy(source, target)


def link_or_copy(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def identity(wheel: Path) -> str:
    """Name a wheel's content: the cache folder it lies in is named by the hash of its sources."""
    return f"{wheel.parent.name}/{wheel.name}"


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
