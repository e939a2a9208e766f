# SPDX-License-Identifier: BSD-3-Clause
"""Firmware on boards that a file describes, with an application's own main, and as a library."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import etx_runtime
import numpy as np
import pytest
import torch
from etx_backend_arm.cortex_m import CortexMQuantizer, lower_to_cortex_m
from etx_backend_arm.firmware.build import build_firmware
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import quantize, quantize_edges
from test_firmware import BUILDS, PACKAGES, etx, run, text_size

sys.path.insert(0, str(PACKAGES / "etx-quant" / "tests"))
from digits import digits, train

sys.path.insert(0, str(PACKAGES / "etx-backend-arm" / "tests"))
import small_networks

sys.path.insert(0, str(PACKAGES.parent / "tools"))
from snippets import blocks

MAIN = Path(__file__).with_name("digits_main.cpp")
KEYWORDS = PACKAGES / "etx-backend-arm" / "tests" / "data" / "kws_executorch.pte"
MOST_TEXT_OF_TWO = 56_000
"""Bytes of code, of which KEYWORDS alone has 38,000 and digits 43,000."""
IMAGES = 360
MICROBIT = {
    "machine": "microbit",
    "banks": [
        {"name": "flash", "origin": 0, "size": "256K"},
        {"name": "ram", "origin": "0x20000000", "size": "16K"},
    ],
}
PRODUCT = """\
cmake_minimum_required(VERSION 3.24)
project(product LANGUAGES C CXX)
add_subdirectory(etx)
add_executable(product main.cpp board/startup.cpp)
target_include_directories(product PRIVATE board)
target_compile_options(product PRIVATE -fno-exceptions -fno-rtti)
target_link_libraries(product PRIVATE etx_firmware)
target_link_options(product PRIVATE -nostartfiles -Wl,--gc-sections
                    -L${CMAKE_SOURCE_DIR}/board -T ${CMAKE_SOURCE_DIR}/board/memory.ld)
set_target_properties(product PROPERTIES SUFFIX .elf)
"""


@pytest.fixture(scope="module")
def folder() -> Path:
    """A folder with model, board and held-out images, int8 as the model takes them."""
    made = BUILDS / "firmware-digits"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    images, labels, tried, names = digits()
    model = train(images, labels)
    quantized = quantize(model, [(each,) for each in images[:256].split(1)], CortexMQuantizer())
    ins, _ = quantize_edges(quantized)
    integers = ins[0]
    steps = (tried[:IMAGES] / integers.scale).round() + integers.zero_point
    given = steps.clamp(integers.least, integers.most).to(torch.int8)
    edge = lower_to_cortex_m(to_edge(torch.export.export(quantized, (given[:1],))))
    edge.to_executorch(ExecutorchBackendConfig(target=None)).save(made / "digits.pte")
    given.numpy().tofile(made / "images.bin")
    names[:IMAGES].numpy().tofile(made / "names.bin")
    with torch.no_grad():
        found = model(tried[:IMAGES]).argmax(-1)
    (made / "float").write_text(str((found == names[:IMAGES]).double().mean().item()))
    (made / "board.json").write_text(json.dumps(MICROBIT))
    (made / "main.cpp").write_text(MAIN.read_text().replace("@IMAGES@", f"{made}/images.bin"))
    return made


def check(folder: Path, printed: str) -> None:
    """Hold the board's digits against those of this machine, and against the true ones."""
    given = np.fromfile(folder / "images.bin", np.int8).reshape(-1, 1, 1, 8, 8)
    model = etx_runtime.load(folder / "digits.pte")
    expected = "".join(str(np.asarray(model(each)).argmax()) for each in given)
    (found,) = re.findall(r"digits: (\d+)", printed)
    assert found == expected
    names = np.fromfile(folder / "names.bin", np.int64)
    right = np.mean([int(digit) == name for digit, name in zip(found, names, strict=True)])
    assert right >= float((folder / "float").read_text()) - 0.005


def write(folder: Path, name: str, *options: object) -> str:
    words = ("--target", "cortex-m0plus", "--board", folder / "board.json", "--sources", PACKAGES)
    done = etx("firmware", folder / "digits.pte", *words, "-o", folder / name, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_digits_on_a_microbit(folder: Path) -> None:
    """Flash of 256 kB, 16 kB of RAM: the linker refuses what is more."""
    write(folder, "project")
    shutil.copyfile(folder / "main.cpp", folder / "project" / "main.cpp")
    stated = write(folder, "project", "--size")
    (ram,) = re.findall(r"^RAM +([\d,]+) bytes", stated, re.M)
    assert int(ram.replace(",", "")) <= 12_000, stated
    build = folder / "project" / "build"
    run("cmake", "-S", folder / "project", "-B", build, "-G", "Ninja")
    run("cmake", "--build", build, "-j2")
    check(folder, run("ctest", "--test-dir", build, "-V"))
    rows = re.findall(r"^ +([\d,]+) +[\d,]+  (.*)$", stated, re.M)
    sizes = {name: int(size.replace(",", "")) for size, name in rows}
    code = sum(size for name, size in sizes.items() if not name.startswith(("weights", "model")))
    code -= next(size for name, size in sizes.items() if name.startswith("together"))
    assert abs(code - text_size(build / "firmware.elf")) < 200 + 24 * 1024, stated
    assert any(name.startswith("kernels: conv2d (cortex_m::quantized_conv2d") for name in sizes)


def test_a_library_in_a_build_of_its_own(folder: Path) -> None:
    product = folder / "product"
    product.mkdir()
    write(folder, "board-only")
    shutil.copytree(folder / "board-only" / "board", product / "board")
    shutil.copyfile(folder / "main.cpp", product / "main.cpp")
    write(folder, "product/etx", "--library")
    (product / "CMakeLists.txt").write_text(PRODUCT)
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={product}/etx/toolchain.cmake"
    options = ("-DCMAKE_BUILD_TYPE=MinSizeRel", toolchain)
    build = product / "etx" / "build"
    run("cmake", "-S", product, "-B", build, "-G", "Ninja", *options)
    run("cmake", "--build", build, "-j2")
    image = build / "product.elf"
    emulator = "qemu-system-arm -M microbit -nographic -monitor none -serial null -kernel"
    semihosting = ("-semihosting-config", "enable=on,target=native")
    check(folder, run(*emulator.split(), image, *semihosting))


def test_each_small_network_on_a_board(tmp_path: Path) -> None:
    """All of them in one image: each returns what the host does."""
    files = [small_networks.write(name, tmp_path) for name in small_networks.NETWORKS]
    words = ("--target", "cortex-m55", "--sources", PACKAGES, "--tolerance", "0", "--share-arenas")
    made = BUILDS / "firmware-small"
    shutil.rmtree(made, ignore_errors=True)
    done = etx("firmware", *files, *words, "-o", made)
    assert done.returncode == 0, done.stderr
    build = made / "build"
    build_firmware(made, build, [])
    assert run("ctest", "--test-dir", build, "-V").count("PASSED") == len(files)


@pytest.mark.parametrize("name", ["cortex-m4", "cortex-m55"])
def test_two_networks_in_one_image(folder: Path, name: str) -> None:
    """Each returns what the host does, in turn, twice; they share kernels and arenas."""
    made, files = folder / f"two-{name}", (KEYWORDS, folder / "digits.pte")
    words = ("--target", name, "--sources", PACKAGES, "--tolerance", "0", "--share-arenas")
    done = etx("firmware", *files, *words, "-o", made)
    assert done.returncode == 0, done.stderr
    build = made / "build"
    image = build_firmware(made, build, ["-DETX_FIRMWARE_ITERATIONS=2"])
    assert run("ctest", "--test-dir", build, "-V").count("PASSED") == 2
    assert text_size(image) <= MOST_TEXT_OF_TWO
    arenas = re.findall(r"^planned arena 1 +([\d,]+) bytes(.*)$", done.stdout, re.M)
    *own, shared = (int(size.replace(",", "")) for size, _ in arenas)
    assert len(own) == 2
    assert shared == max(own)
    assert arenas[-1][1] == "  (of kws_executorch, digits in turn)"


def test_a_model_is_read_from_the_debugger_s_file(tmp_path: Path) -> None:
    sources = ("--sources", PACKAGES, "--model-at", "semihosting", "--trusted")
    folder = tmp_path / "f"
    done = etx("firmware", KEYWORDS, "--target", "cortex-m4", "-o", folder, *sources)
    assert done.returncode == 0, done.stderr
    build_firmware(folder, folder / "build", [])
    assert "PASSED" in run("ctest", "--test-dir", folder / "build", "-V")
    (folder / "model" / "model.pte").write_bytes(b"too short")
    failed = subprocess.run(
        ["ctest", "--test-dir", str(folder / "build"), "-V"], capture_output=True, text=True
    )
    assert failed.returncode != 0
    assert "the debugger gives no file, or one of another size: " in failed.stdout


def test_pages_run(tmp_path: Path) -> None:
    """The commands of both pages, one after the other, with a checkout at `packages`."""
    (tmp_path / "packages").symlink_to(PACKAGES)
    environment = {**os.environ, "CMAKE_GENERATOR": "Ninja", "CCACHE_BASEDIR": str(tmp_path)}
    runs = {"python": [sys.executable, "-c"], "sh": ["bash", "-ec"]}
    printed = ""
    for page in ("microcontrollers.md", "port-a-board.md"):
        for block in blocks((PACKAGES.parent / "docs" / page).read_text()):
            if block.language in runs:
                command = [*runs[block.language], block.text]
                options = {"cwd": tmp_path, "env": environment, "text": True}
                done = subprocess.run(command, capture_output=True, **options)
                assert done.returncode == 0, block.text + done.stdout + done.stderr
                printed += done.stdout
    assert printed.count("PASSED") == 2
    assert printed.count("one inference") == 2
    assert (tmp_path / "product" / "build" / "firmware.elf").is_file()
    assert (tmp_path / "etx" / "CMakeLists.txt").is_file()
