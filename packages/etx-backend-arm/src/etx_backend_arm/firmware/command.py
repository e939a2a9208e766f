# SPDX-License-Identifier: BSD-3-Clause
"""The command `etx firmware`."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from etx_schema.errors import EtxError, ProgramError
from etx_schema.pte_reader import read_pte

from etx_backend_arm.firmware.memory import MemoryNeeds, method_arena, planned_arenas
from etx_backend_arm.firmware.targets import TARGETS, target


def register(subparsers: Any) -> None:
    """Add the command."""
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
    parser.add_argument("--target", required=True, metavar="CPU", help=", ".join(TARGETS))
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="a folder of its own")
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
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    chosen = target(options.target)
    folder = Path(options.output)
    from etx_backend_arm.firmware.project import HEADER, Firmware, package_sources, write_firmware

    if folder.exists() and not (folder / HEADER).is_file():
        raise EtxError(f"{folder} exists and was not written by etx firmware: give another folder")
    model = Path(options.file)
    needs = _needs(model, options)
    from etx_backend_arm.firmware.case import make_case

    firmware = Firmware(
        model=model,
        method=options.method,
        name=options.target,
        target=chosen,
        case=make_case(model, options.method, options.input, options.seed),
        needs=needs,
        tolerance=options.tolerance,
        verification="Minimal" if options.trusted else "Full",
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        work = scratch / folder.name
        work.mkdir()
        with package_sources(options.sources) as packages:
            write_firmware(work, firmware, packages)
        if (folder / "main.cpp").is_file():
            shutil.copyfile(folder / "main.cpp", work / "main.cpp")
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(work, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{folder}: firmware for {options.target}\n{needs.table()}", end="")
    return 0


def _needs(model: Path, options: argparse.Namespace) -> MemoryNeeds:
    """Return what the method takes. Errors: EtxError where the board has less."""
    try:
        plans = {plan.name: plan for plan in read_pte(model).program.execution_plan}
    except ProgramError as error:
        raise EtxError(f"{model}: {error}") from error
    if options.method not in plans:
        raise EtxError(f"{model} has no method {options.method!r}: {sorted(map(str, plans))}")
    plan = plans[options.method]
    arenas, method = planned_arenas(plan), method_arena(plan)
    needs = MemoryNeeds(arenas, method, options.temp, options.stack, model.stat().st_size)
    board = target(options.target).board
    if (ram := needs.ram()) > board.ram.size:
        raise EtxError(
            f"{model} needs {ram:,} bytes of RAM and {board.name} has {board.ram.size:,}:\n"
            f"{needs.table()}"
        )
    return needs
