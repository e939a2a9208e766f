# SPDX-License-Identifier: BSD-3-Clause
"""Ethos-U delegates in firmware: the NPU in QEMU is a simulator, that of a product a driver."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from etx_backend_arm.firmware.build import build_firmware
from test_firmware import BUILDS, PACKAGES, etx, run

ARM = PACKAGES / "etx-backend-arm"
sys.path.insert(0, str(ARM / "tests"))
import npu_networks  # noqa: E402

TARGET = "cortex-m55+ethos-u55-128"
MOST_TEXT = 4096
DELEGATE = ("ethos_u/backend.cpp", "ethos_u/blob.cpp", "ethos_u/driver.cpp")
FLAGS = "-std=c++17 -Os -mthumb -mcpu=cortex-m55 -mfloat-abi=hard -fno-exceptions -fno-rtti"
WARNINGS = "-Wall -Wextra -Wshadow -Wconversion -Werror"


@pytest.mark.parametrize("name", ["keywords", "parts"])
def test_the_board_returns_what_the_reference_model_does(name: str) -> None:
    folder = BUILDS / f"firmware-npu-{name}"
    shutil.rmtree(folder / "firmware", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    model = npu_networks.write(name, folder)
    words = ("--input", folder / "input.npy", "--tolerance", "0", "--sources", PACKAGES)
    done = etx("firmware", model, "--target", TARGET, "-o", folder / "firmware", *words)
    assert done.returncode == 0, done.stderr
    np.load(folder / "expected.npy").tofile(folder / "firmware" / "model" / "model_output0.bin")
    build = folder / "firmware" / "build"
    build_firmware(folder / "firmware", build, [])
    printed = run("ctest", "--test-dir", build, "-V")
    assert len(re.findall(r"output 0\[\d+\] = \S+ as expected: \S+", printed)) == 12
    planned = re.findall(r"method arena +([\d,]+) bytes", done.stdout)[0].replace(",", "")
    assert f"method arena: {planned} bytes" in printed


def test_the_delegate_with_a_driver_is_small(tmp_path: Path) -> None:
    headers = [ARM / "native", ARM / "tests" / "cpp" / "driver", PACKAGES / "etx-runtime/include"]
    include = [f"-I{folder}" for folder in headers]
    objects = []
    for name in DELEGATE:
        objects.append(tmp_path / f"{Path(name).stem}.o")
        source = ("-c", ARM / "native" / name, "-o", objects[-1])
        run("arm-none-eabi-g++", *FLAGS.split(), *WARNINGS.split(), *include, *source)
    sizes = run("arm-none-eabi-size", *objects)
    assert sum(int(line.split()[0]) for line in sizes.splitlines()[1:]) <= MOST_TEXT, sizes


def test_commands_for_another_npu_are_refused(tmp_path: Path) -> None:
    model = npu_networks.write("parts", tmp_path)
    for target in ("cortex-m55", "cortex-m55+ethos-u55-256"):
        words = ("--target", target, "-o", tmp_path / "f", "--sources", PACKAGES)
        done = etx("firmware", model, *words)
        assert done.returncode != 0
        assert "give --target cortex-m55+ethos-u55-128" in done.stderr
        assert not (tmp_path / "f").exists()
