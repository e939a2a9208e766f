# SPDX-License-Identifier: BSD-3-Clause
"""Print flash, RAM and instructions of five int8 networks on six processors, as Markdown.

Run it in an environment with etx-backend-arm[aot], etx-quant and scikit-learn (digits); it needs
arm-none-eabi-g++, cmake and qemu-system-arm. Instructions are those of one inference in QEMU, and
not cycles; an image that returns other bytes than this machine's runtime fails. Vector kernels are
by clang++ where there is one, or with `--gcc-alone` by GCC. A quarter of an hour.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from etx_backend_arm.cortex_m import CortexMQuantizer, lower_to_cortex_m
from etx_backend_arm.firmware.counts import count
from etx_backend_arm.firmware.targets import target
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import quantize, quantize_edges

PACKAGES = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PACKAGES / name / "tests") for name in ("etx-backend-arm", "etx-quant")]
import tiny  # noqa: E402

CORES = ("cortex-m55", "cortex-m33", "cortex-m7", "cortex-m4", "cortex-m3", "cortex-m0plus")
ETX = str(Path(sys.executable).with_name("etx"))
HEADER = (
    "| network | core | code, flash | model, flash | planned arena | RAM | instructions |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)
RAM = re.compile(r"^(planned arena 1|method arena|stack|RAM) +([\d,]+) bytes", re.MULTILINE)


def main() -> int:
    """Build, count, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=[*tiny.MAKE, "digits"])
    parser.add_argument("--cores", nargs="*", default=CORES)
    parser.add_argument("--gcc-alone", action="store_true", help="count what GCC makes of all")
    options = parser.parse_args()
    given = ["-DETX_CORTEX_M_CLANG=OFF"] if options.gcc_alone else []
    with tempfile.TemporaryDirectory() as scratch:
        print(HEADER)
        for name in options.models:
            for io in ("float", "int8"):
                path = Path(scratch) / f"{name}-{io}.pte"
                write(name, path, io == "int8")
                for core in options.cores:
                    print(f"| {name}, {io} | {core} | {row(path, core, given)} |", flush=True)
    return 0


def write(name: str, path: Path, is_integer: bool) -> None:
    """Write a quantized network; `is_integer` with int8 inputs and outputs."""
    if name == "digits":
        import digits

        images, labels, *_ = digits.digits()
        model, inputs = digits.train(images, labels), [(x,) for x in images[:64].split(1)]
    else:
        network = tiny.make(name)
        model, inputs = network.model, network.inputs
    quantized = quantize(model, inputs, CortexMQuantizer())
    given = inputs[0]
    if is_integer:
        quantize_edges(quantized)
        given = tuple(torch.zeros(x.shape, dtype=torch.int8) for x in given)
    edge = lower_to_cortex_m(to_edge(torch.export.export(quantized, given)))
    edge.to_executorch(ExecutorchBackendConfig(target=None)).save(path)


def row(path: Path, core: str, given: list[str], address: int | None = None) -> str:
    """Return the cells of a network on a core; it is counted as CMake builds it, `given` these.

    The model is linked, or lies at an `address` before the image starts.
    """
    folder = path.with_suffix(f".{core}") / "firmware"
    words = [str(path), "--target", core, "--sources", str(PACKAGES), "--tolerance", "0"]
    loads = []
    if address is not None:
        words += ["--model-at", hex(address)]
        file = folder / "model" / "model.pte"
        loads = ["-device", f"loader,file={file},addr={address:#x},force-raw=on"]
    stated = etx("firmware", *words, "-o", str(folder), "--size")
    needs = dict(RAM.findall(stated))
    sizes = re.findall(r"^ +([\d,]+) +[\d,]+  (.*)$", stated, re.MULTILINE)
    flash = sum(
        int(size.replace(",", ""))
        for size, part in sizes
        if not part.startswith(("weights", "model", "together"))
    )
    total = count(folder, target(core).board, loads, given).total
    cells = (
        f"{flash:,}",
        f"{path.stat().st_size:,}",
        needs["planned arena 1"],
        needs["RAM"],
        f"{total:,}",
    )
    return " | ".join(cells)


def etx(*words: str) -> str:
    """Run a command; return what it prints."""
    done = subprocess.run([ETX, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
