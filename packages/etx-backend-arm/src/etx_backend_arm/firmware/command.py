# SPDX-License-Identifier: BSD-3-Clause
"""The commands `etx firmware` and `etx count`."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etx_schema.errors import EtxError, ProgramError
from etx_schema.pte_reader import read_pte

from etx_backend_arm.firmware.memory import MemoryNeeds, method_arena, planned_arenas
from etx_backend_arm.firmware.npu import npu_scratch
from etx_backend_arm.firmware.targets import TARGETS, target

if TYPE_CHECKING:
    from etx_backend_arm.firmware.project import Firmware


def register(subparsers: Any) -> None:
    """Add the command `etx firmware`."""
    parser = subparsers.add_parser(
        "firmware",
        help="write a CMake project for a microcontroller",
        description="Write a CMake project that runs a model on a Cortex-M: the core, the kernels "
        "that the file calls, the model, startup code and a linker script. It needs "
        "arm-none-eabi-g++; ctest runs it in QEMU and compares with this machine's runtime. "
        "Written again, a project keeps its main.cpp.",
        epilog="example: etx firmware model.pte --target cortex-m55 -o firmware",
    )
    parser.add_argument("file", help="a .pte file")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="a folder of its own")
    _add_options(parser)
    parser.set_defaults(run=_run)


def register_count(subparsers: Any) -> None:
    """Add the command `etx count`."""
    parser = subparsers.add_parser(
        "count",
        help="count a model's instructions on an emulated microcontroller",
        description="Build the firmware of each file, run it in QEMU and print how many "
        "instructions each operator executes: exact numbers, and not cycles. It needs cmake, "
        "arm-none-eabi-g++, qemu-system-arm and a C compiler.",
        epilog="example: etx count before.pte after.pte --target cortex-m4",
    )
    parser.add_argument("files", nargs="+", metavar="file", help="a .pte file")
    _add_options(parser)
    parser.set_defaults(run=_run_count)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", required=True, metavar="CPU[+NPU]", help=", ".join(TARGETS))
    parser.add_argument("--method", default="forward", metavar="NAME", help="(forward)")
    parser.add_argument(
        "--input", action="append", default=[], metavar="FILE", help="of the test: .npy, .npz, .bin"
    )
    parser.add_argument("--seed", type=int, default=0, help="of random inputs (0)")
    parser.add_argument(
        "--temp", type=int, default=16384, metavar="BYTES", help="scratch of kernels (16384)"
    )
    parser.add_argument("--stack", type=int, default=4096, metavar="BYTES", help="(4096)")
    parser.add_argument(
        "--tolerance", type=float, default=1e-5, help="of float outputs, relative to 1 + |x| (1e-5)"
    )
    parser.add_argument(
        "--trusted", action="store_true", help="check only the file's header when it is loaded"
    )
    parser.add_argument("--sources", metavar="DIR", help="a folder with the packages' sources")


def _run(options: argparse.Namespace) -> int:
    folder = Path(options.output)
    from etx_backend_arm.firmware.project import HEADER

    target(options.target)
    if folder.exists() and not (folder / HEADER).is_file():
        raise EtxError(f"{folder} exists and was not written by etx firmware: give another folder")
    firmware = _firmware(Path(options.file), options)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        work = scratch / folder.name
        _write(work, firmware, options)
        if (folder / "main.cpp").is_file():
            shutil.copyfile(folder / "main.cpp", work / "main.cpp")
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(work, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{folder}: firmware for {options.target}\n{firmware.needs.table()}", end="")
    return 0


def _run_count(options: argparse.Namespace) -> int:
    from etx_backend_arm.firmware.counts import count, require_tools, table

    require_tools()
    found = []
    for file in options.files:
        firmware = _firmware(Path(file), options)
        with tempfile.TemporaryDirectory(prefix="etx-count-") as scratch:
            folder = Path(scratch) / "firmware"
            _write(folder, firmware, options)
            found.append(count(folder, firmware.target.board))
    print(table(options.files, found), end="")
    return 0


def _write(folder: Path, firmware: Firmware, options: argparse.Namespace) -> None:
    from etx_backend_arm.firmware.project import package_sources, write_firmware

    folder.mkdir()
    with package_sources(options.sources) as packages:
        write_firmware(folder, firmware, packages)


def _firmware(model: Path, options: argparse.Namespace) -> Firmware:
    """Return what a firmware is written from. Errors: EtxError where there is none."""
    from etx_backend_arm.firmware.project import Firmware

    chosen, needs = target(options.target), _needs(model, options)
    from etx_backend_arm.firmware.case import make_case

    return Firmware(
        model=model,
        method=options.method,
        name=options.target,
        target=chosen,
        case=make_case(model, options.method, options.input, options.seed),
        needs=needs,
        tolerance=options.tolerance,
        verification="Minimal" if options.trusted else "Full",
    )


def _needs(model: Path, options: argparse.Namespace) -> MemoryNeeds:
    """Return what the method takes. Errors: EtxError where the board has less."""
    try:
        pte = read_pte(model)
    except ProgramError as error:
        raise EtxError(f"{model}: {error}") from error
    plans = {plan.name: plan for plan in pte.program.execution_plan}
    if options.method not in plans:
        raise EtxError(f"{model} has no method {options.method!r}: {sorted(map(str, plans))}")
    plan = plans[options.method]
    arenas, method = planned_arenas(plan), method_arena(plan)
    scratch = max(options.temp, npu_scratch(pte, plan, options.target))
    needs = MemoryNeeds(arenas, method, scratch, options.stack, model.stat().st_size)
    board = target(options.target).board
    if (ram := needs.ram()) > board.ram.size:
        raise EtxError(
            f"{model} needs {ram:,} bytes of RAM and {board.name} has {board.ram.size:,}:\n"
            f"{needs.table()}"
        )
    return needs
