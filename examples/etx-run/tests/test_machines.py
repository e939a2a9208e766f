# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import re
import subprocess
from pathlib import Path

import etx_runtime
import numpy as np
import pytest
import torch
from conftest import SRAM_BYTES, Model
from machines import Machine


def start(
    etx_run: tuple[Machine, Path], model: Model, *arguments: str
) -> subprocess.CompletedProcess[str]:
    machine, program = etx_run
    return subprocess.run(
        machine.command(program, list(arguments)),
        cwd=model.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=120,
    )


@pytest.mark.parametrize("call", [0, 1])
def test_the_numbers_are_those_of_eager(
    etx_run: tuple[Machine, Path], model: Model, call: int
) -> None:
    shape = ",".join(map(str, model.inputs[call].shape))
    prefix = f"{etx_run[0].name}-{call}-"
    files = ("--input", f"x{call}.bin", "--shape", shape, "--output", prefix)
    done = start(etx_run, model, "net.pte", *files, "--iterations", "2")
    assert done.returncode == 0, done.stdout
    expected = model.outputs[call]
    actual = np.fromfile(model.folder / f"{prefix}0.bin", np.float32).reshape(expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    sizes = {
        line.split(":")[0]: int(line.split(":")[1].split()[0])
        for line in done.stdout.splitlines()
        if line.endswith(" bytes")
    }
    sram = "SRAM" if etx_run[0].board else "heap"
    dram = "DRAM" if etx_run[0].board else "heap"
    assert 0 < sizes[f"arena 1 in {sram}"] <= SRAM_BYTES
    assert sizes[f"arena 2 in {dram}"] > 0


def test_random_numbers_are_the_same_bits(etx_run: tuple[Machine, Path], model: Model) -> None:
    prefix = f"noise-{etx_run[0].name}-"
    done = start(etx_run, model, "noise.pte", "--output", prefix)
    assert done.returncode == 0, done.stdout
    program = etx_runtime.Runtime.get().load_program(model.folder / "noise.pte")
    expected = program.load_method("forward").execute([])
    assert len(expected) == 12
    for index, numbers in enumerate(expected):
        bits = torch.from_dlpack(numbers).view(torch.uint8).numpy().tobytes()
        assert (model.folder / f"{prefix}{index}.bin").read_bytes() == bits, index


@pytest.mark.parametrize("temp", ["0", "1", "64", "65536"])
def test_scratch_memory_grows(etx_run: tuple[Machine, Path], model: Model, temp: str) -> None:
    shape = ",".join(map(str, model.inputs[0].shape))
    files = ("--input", "x0.bin", "--shape", shape, "--output", f"temp-{temp}-")
    done = start(etx_run, model, "net.pte", *files, "--iterations", "3", "--temp", temp)
    assert done.returncode == 0, done.stdout
    assert f"output 0: float32[{shape[0]}, 5] -> temp-{temp}-0.bin" in done.stdout
    actual = np.fromfile(model.folder / f"temp-{temp}-0.bin", np.float32)
    np.testing.assert_allclose(actual, model.outputs[0].reshape(-1), rtol=1e-5, atol=1e-6)
    assert int(re.findall(r"^temp: (\d+) bytes$", done.stdout, re.M)[0]) > 0


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("cut.pte", "--input", "x0.bin"), 1, "InvalidProgram (0x23)]"),
        (("none.pte",), 1, "cannot be read: none.pte"),
        (("net.pte",), 1, "too few --input"),
        (("net.pte", "--input", "x1.bin"), 1, "must have 1536 bytes"),
        (("net.pte", "--method", "other"), 1, "no method: other"),
        (("net.pte", "--frames", "2"), 2, "usage: etx-run"),
    ],
    ids=["cut", "no-file", "no-input", "size", "method", "option"],
)
def test_bad_input_is_refused(
    etx_run: tuple[Machine, Path],
    model: Model,
    arguments: tuple[str, ...],
    code: int,
    text: str,
) -> None:
    done = start(etx_run, model, *arguments)
    assert (done.returncode, text in done.stdout) == (code, True), done.stdout
