# SPDX-License-Identifier: BSD-3-Clause
"""Tasks by hand that measure: speed, memory, size and error, next to peers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nox

from sessions import (
    COMPILER,
    DEVICE,
    EXECUTORCH,
    LITERT,
    MODELS,
    MODELS_NO_DEPS,
    ROOT,
    both_sides,
    environment,
    litert,
    native_tools,
    requirements,
    run,
)


@nox.session
def sqnr(session: nox.Session) -> None:
    """Print what quantization costs: `-- int8 unet timm:mobilevit_s`. Run by hand."""
    packages, others = (COMPILER, "etx-quant", *DEVICE), (*MODELS, "torch==2.13.0")
    python = environment(session, "sqnr", *packages, others=others, others_no_deps=MODELS_NO_DEPS)
    run(session, python, ROOT / "interop" / "sqnr.py", *session.posargs)


@nox.session
def digits(session: nox.Session) -> None:
    """Print how many digits an int8 net names right, by our kernels and XNNPACK. Run by hand."""
    packages = (COMPILER, "etx-quant", "etx-backend-xnnpack[aot]", *DEVICE)
    python = environment(session, "digits", *packages, others=("scikit-learn==1.9.1",))
    run(session, python, "-W", "ignore", ROOT / "interop" / "quantized_digits.py")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure both sides, interleaved; writes JSON and a table. Run by hand.

    `-- operators` measures operators of models in all dtypes next to torch, onnxruntime, XNNPACK
    and ExecuTorch instead; `-- operators linear --dtypes float32` some of them.
    """
    if session.posargs[:1] == ["operators"]:
        packages = (COMPILER, *DEVICE, "etx-backend-xnnpack[aot]")
        others = (*EXECUTORCH, "ml_dtypes", "protobuf")
        bare = tuple(onnx_requirements())
        python = environment(session, "bench-sweep", *packages, others=others, others_no_deps=bare)
        script = ROOT / "benchmarks" / "sweep.py"
        words = session.posargs[1:]
        run(session, python, "-W", "ignore", script, *words, OMP_NUM_THREADS="1")
        return
    _, sides = both_sides(session)
    tools = ("numpy", *native_tools())
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


def onnx_requirements() -> list[str]:
    """Return onnxruntime and what writes models for it."""
    peers = requirements("requirements-peers.txt")
    return [line for line in peers if line.startswith(("onnx==", "onnxruntime=="))]


@nox.session
def shapes(session: nox.Session) -> None:
    """Compile operators of 330 random shapes, next to onnxruntime: finds cliffs. Run by hand."""
    bare = tuple(onnx_requirements())
    others = (*LITERT, "ml_dtypes", "protobuf")
    python = environment(session, "shapes", COMPILER, *DEVICE, others=others, others_no_deps=bare)
    script = ROOT / "benchmarks" / "shapes.py"
    run(session, python, "-W", "ignore", script, *session.posargs, OMP_NUM_THREADS="1")


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
def passes(session: nox.Session) -> None:
    """Write docs/passes-measured.md: what each pass does to the model set. Run by hand."""
    host = environment(
        session, "interop-host", COMPILER, others=MODELS, others_no_deps=MODELS_NO_DEPS
    )
    run(session, host, "-W", "ignore", ROOT / "benchmarks" / "passes.py", *session.posargs)


@nox.session
def compared(session: nox.Session) -> None:
    """Compare all values of the model set with eager mode, and those of int8 models with their
    quantized reference and float model: docs/compared.md. Run by hand."""
    packages = (COMPILER, "etx-devtools[run,aot]", "etx-backend-xnnpack[aot]", *DEVICE)
    host = environment(session, "compared", *packages, others=MODELS, others_no_deps=MODELS_NO_DEPS)
    run(session, host, "-W", "ignore", ROOT / "interop" / "compared.py", *session.posargs)
    if not session.posargs:
        run(session, host, "-W", "ignore", ROOT / "interop" / "compared_int8.py")
        run(session, host, "-W", "ignore", ROOT / "interop" / "compared_command.py")
        run(session, host, "-W", "ignore", ROOT / "interop" / "commands_on.py")
