# SPDX-License-Identifier: BSD-3-Clause
"""Print flash, RAM and instructions of five int8 networks on three processors, as Markdown.

Run it in an environment with etx-backend-arm[aot], etx-quant and scikit-learn; it needs
arm-none-eabi-g++, cmake and qemu-system-arm. Instructions are those of one inference in QEMU, and
not cycles. A few minutes.
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
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import quantize, quantize_edges

PACKAGES = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PACKAGES / name / "tests") for name in ("etx-backend-arm", "etx-quant")]
import digits  # noqa: E402
import tiny  # noqa: E402

CORES = ("cortex-m55", "cortex-m4", "cortex-m0plus")
ETX = str(Path(sys.executable).with_name("etx"))
RAM = re.compile(r"^(planned arena 1|method arena|stack|RAM) +([\d,]+) bytes", re.MULTILINE)
TOTAL = re.compile(r"^one inference +([\d,]+)", re.MULTILINE)


def main() -> int:
    """Build, count, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=[*tiny.MAKE, "digits"])
    chosen = parser.parse_args().models
    with tempfile.TemporaryDirectory() as scratch:
        print(
            "| network | core | code, flash | model, flash | planned arena | RAM | instructions |"
        )
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for name in chosen:
            for io in ("float", "int8"):
                path = Path(scratch) / f"{name}-{io}.pte"
                write(name, path, io == "int8")
                for core in CORES:
                    print(f"| {name}, {io} | {core} | {row(path, core)} |", flush=True)
    return 0


def write(name: str, path: Path, is_integer: bool) -> None:
    """Write a quantized network; `is_integer` with int8 inputs and outputs."""
    if name == "digits":
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


def row(path: Path, core: str) -> str:
    """Return the cells of a network on a core."""
    folder = path.with_suffix(f".{core}")
    words = (str(path), "--target", core, "--sources", str(PACKAGES))
    stated = etx("firmware", *words, "-o", str(folder), "--size")
    needs = dict(RAM.findall(stated))
    sizes = re.findall(r"^ +([\d,]+) +[\d,]+  (.*)$", stated, re.MULTILINE)
    flash = sum(
        int(size.replace(",", ""))
        for size, part in sizes
        if not part.startswith(("weights", "model", "together"))
    )
    (total,) = TOTAL.findall(etx("count", *words))
    cells = (
        f"{flash:,}",
        f"{path.stat().st_size:,}",
        needs["planned arena 1"],
        needs["RAM"],
        total,
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
