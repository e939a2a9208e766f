# SPDX-License-Identifier: BSD-3-Clause
"""Tasks by hand that run samples and tests of others, ExecuTorch's and PyTorch's."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable

import nox

from sessions import (
    COMPILER,
    DEVICE,
    EXECUTORCH,
    LITERT,
    MODELS,
    MODELS_NO_DEPS,
    PORT,
    PROJECTS,
    ROOT,
    TOSA,
    both_sides,
    environment,
    executorch_folder,
    native_tools,
    requirements,
    run,
)

THEIR_TESTS = (
    "pytest==9.2.0",
    "parameterized==0.9.0",
    "safetensors==0.8.0",
    "torchao==0.18.0",
    "expecttest==0.3.0",
)


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


@nox.session
def exported(session: nox.Session) -> None:
    """Compile 2,000 of PyTorch's samples and 400 random graphs, drawn by ETX_SEED, and 200 random
    programs with control flow. By hand.

    `-- table` draws 10,000 graphs over the table of kernels instead, runs them with memory reused
    and not, and prints counts and the rows reached; `-- table --graphs 500 --first 500` a part.
    """
    if session.posargs[:1] == ["table"]:
        tools = ("pytest", "expecttest==0.3.0")
        python = environment(session, "exported", COMPILER, *DEVICE, others=tools)
        script = ROOT / "packages" / "etx-exir" / "tests" / "table_sweep.py"
        run(session, python, "-W", "ignore", script, *session.posargs[1:])
        return
    tox = [sys.executable, "-m", "tox", "run", "-c", ROOT / "tox.ini", "-e", "exir"]
    seed = str(random.SystemRandom().randrange(10**6))
    given = {"ETX_SAMPLES": "2000", "ETX_GRAPHS": "400", "ETX_RANDOM_PROGRAMS": "200"}
    given["ETX_SEED"] = seed
    environ = {name: os.environ.get(name, value) for name, value in given.items()}
    drawn = (f"tests/device/test_{name}.py" for name in ("exported_means_runs", "random_programs"))
    run(session, *tox, "--", *drawn, "--rows", "0", *session.posargs, **environ)


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


@nox.session(name="quantized-graphs")
def quantized_graphs(session: nox.Session) -> None:
    """Draw 400 quantized models for all targets and both runtimes: `-- COUNT SEED`. By hand.

    A tenth as many are nets of all kinds of steps, for all targets on ETX.
    """
    python = environment(session, "interop-both", *PORT, others=EXECUTORCH, others_no_deps=TOSA)
    count, seed = session.posargs or ["400", str(random.SystemRandom().randrange(10**6))]
    for script, number in (("nets", int(count) // 10), ("graphs", int(count))):
        path = ROOT / "interop" / f"quantized_{script}.py"
        run(session, python, "-W", "ignore", path, number, seed)


@nox.session(name="xnnpack-fuzz")
def xnnpack_fuzz(session: nox.Session) -> None:
    """Change a million blobs and files of packed weights, under sanitizers. By hand.

    `-- RUNS SEED`; XNNPACK is built under them, too.
    """
    packages = ("etx-backend-xnnpack[aot]", DEVICE[1])
    tools = ("pytest==9.2.0", *native_tools())
    python = environment(session, "xnnpack-fuzz", *packages, others=tools)
    tests = ROOT / "packages" / "etx-backend-xnnpack" / "tests"
    given = session.posargs or ["1000000", str(random.SystemRandom().randrange(10**6))]
    folder = ROOT / ".build" / "xnnpack-fuzz"
    run(session, python, "-W", "ignore", tests / "test_fuzz.py", folder, *given)


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


def on_both(
    session: nox.Session, name: str, python: str, peer: Callable[[], str], *peer_script: str
) -> None:
    """Run a suite of ExecuTorch's on ETX; with `--write` on ExecuTorch, too, and write its page.

    `peer_script` is what runs it there: a script and its first arguments.
    """
    theirs = executorch_folder(session)
    scripts, out = ROOT / "interop" / name.replace("-", "_"), ROOT / ".build" / name
    out.mkdir(exist_ok=True)
    files = (out / "etx.json", out / "executorch.json")
    names = [word for word in session.posargs if word != "--write"]
    run(session, python, scripts / "run.py", theirs, "--json", files[0], *names)
    if "--write" in session.posargs:
        script, *words = peer_script
        run(session, peer(), scripts / script, theirs, *words, "--json", files[1], *names)
        run(session, python, scripts / "page.py", *files)


@nox.session(name="cortex-m-tests")
def cortex_m_tests(session: nox.Session) -> None:
    """Run ExecuTorch's own Cortex-M tests, as they lie in its wheel, on ETX. Run by hand.

    `-- ops/test_add.py` runs a file of them; `-- --write` runs them on ExecuTorch, too, and writes
    docs/cortex-m-tests.md. Tests that need Arm's simulator are left out by name.
    """
    name, packages = "cortex-m-tests", (*PORT, "etx-backend-arm[aot]")
    tools, models = (*THEIR_TESTS, "pillow"), MODELS_NO_DEPS[:2]
    python = environment(session, name, *packages, others=tools, others_no_deps=models)

    def peer() -> str:
        others, plain = (*EXECUTORCH, *tools), (*models, *TOSA)
        return environment(session, f"{name}-executorch", others=others, others_no_deps=plain)

    on_both(session, name, python, peer, "run.py", "--peer")


@nox.session(name="operator-tests")
def operator_tests(session: nox.Session) -> None:
    """Run ExecuTorch's operator suite, as it lies in its wheel, on ETX. Run by hand.

    `-- add conv2d` runs these files of it; `-- --write` runs them on ExecuTorch, too, and writes
    docs/operator-tests.md.
    """
    python = environment(session, "exporter-tests", *PORT, others=THEIR_TESTS)

    def peer() -> str:
        others = (*EXECUTORCH, "pytest")
        return environment(session, "operator-tests-executorch", others=others)

    on_both(session, "operator-tests", python, peer, "run.py", "--peer")


@nox.session(name="arm-tests")
def arm_tests(session: nox.Session) -> None:
    """Run ExecuTorch's tests of Arm operators, as they lie in its wheel, on ETX. Run by hand.

    `-- add conv2d` runs these files of them, `-- --match tosa_FP` tests of such names; `-- --write`
    runs them on ExecuTorch, too, and writes docs/arm-tests.md. All of them take hours: what a run
    that ended has found stays in .build/arm-tests, and `-- --resume --write` goes on from there.
    """
    python = environment(session, "arm-tests", *PORT, others=THEIR_TESTS)

    def peer() -> str:
        others = (*EXECUTORCH, *THEIR_TESTS, "ethos-u-vela==5.2.0", "ml_dtypes")
        return environment(session, "arm-tests-executorch", others=others, others_no_deps=TOSA)

    on_both(session, "arm-tests", python, peer, "theirs.py")


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
