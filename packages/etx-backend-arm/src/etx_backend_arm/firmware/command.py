# SPDX-License-Identifier: BSD-3-Clause
"""The commands `etx firmware` and `etx count`."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etx_schema._generated.program import ExecutionPlan
from etx_schema.calls import choose_method
from etx_schema.errors import EtxError, ProgramError
from etx_schema.inspect.arenas import Arena
from etx_schema.inspect.memory import memory_of
from etx_schema.operator_names import operator_name
from etx_schema.pte import PteFile
from etx_schema.pte_reader import read_pte

from etx_backend_arm.firmware.boards import Board, read_board
from etx_backend_arm.firmware.build import BUILDING, build_firmware, have_tools, require_tools
from etx_backend_arm.firmware.memory import MemoryNeeds, method_arena, planned_arenas
from etx_backend_arm.firmware.npu import npu_scratch
from etx_backend_arm.firmware.scratch import RULES, Place, kernel_temporary, place_temporary
from etx_backend_arm.firmware.stack import stack_of
from etx_backend_arm.firmware.targets import TARGETS, Target, target

if TYPE_CHECKING:
    from etx_backend_arm.firmware.project import Firmware

DEFAULT_TEMP = 16384
DEFAULT_STACK = 4096
WITHOUT_SCRATCH = ("executorch_prim::", "aten::view_copy", "aten::relu", "aten::permute_copy")
"""Operators besides those of `cortex_m::` whose kernels allocate nothing on any target."""


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
    parser.add_argument(
        "--library",
        action="store_true",
        help="write the library etx_firmware for a build of yours: no main, no board, no test",
    )
    parser.add_argument(
        "--size",
        action="store_true",
        help="print flash and RAM of each kernel, weight and part of the runtime, too",
    )
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
    parser.add_argument(
        "--board", metavar="FILE", help="a .json file with a board's memories (one of QEMU)"
    )
    parser.add_argument("--method", metavar="NAME", help="(forward, or the only one)")
    parser.add_argument(
        "--input", action="append", default=[], metavar="FILE", help="of the test: .npy, .npz, .bin"
    )
    parser.add_argument("--seed", type=int, default=0, help="of random inputs (0)")
    parser.add_argument(
        "--temp", type=int, metavar="BYTES", help="scratch of kernels (what those of the file ask)"
    )
    parser.add_argument(
        "--stack", type=int, metavar="BYTES", help="(a bound, read from the linked image)"
    )
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

    _target(options)
    if options.library and options.size:
        raise EtxError("--size is of an image, and --library makes none: give one of them")
    if options.size:
        require_tools("--size", BUILDING)
    if folder.exists() and not (folder / HEADER).is_file():
        raise EtxError(f"{folder} exists and was not written by etx firmware: give another folder")
    firmware = _firmware(Path(options.file), options)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        work = scratch / folder.name
        _write(work, firmware, options)
        if (folder / "main.cpp").is_file() and not firmware.is_library:
            shutil.copyfile(folder / "main.cpp", work / "main.cpp")
        is_bounded = options.stack is None and not (firmware.target.npu or firmware.is_library)
        if is_bounded and have_tools(BUILDING):
            firmware = _bound_stack(work, firmware)
        sizes = _sizes(work, firmware) if options.size else ""
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(work, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{folder}: firmware for {options.target}\n{firmware.needs.table()}{sizes}", end="")
    return 0


def _sizes(folder: Path, firmware: Firmware) -> str:
    from etx_backend_arm.firmware.sizes import size_table

    build_firmware(folder, folder.parent / "build", [])
    return "\n" + size_table(folder.parent / "build" / "firmware.map", firmware)


def _target(options: argparse.Namespace) -> Target:
    """Return the target with its board. Errors: EtxError where there is no such one."""
    found = target(options.target)
    if options.board is None:
        return found
    board = read_board(Path(options.board))
    if found.npu is not None:
        raise EtxError("--board has no memory of an NPU's simulator: leave it out, or the NPU")
    return replace(found, board=board)


def _bound_stack(folder: Path, firmware: Firmware) -> Firmware:
    """Build the firmware in `folder` and give it the stack that it may take."""
    from etx_backend_arm.firmware.project import write_memory

    try:
        image = build_firmware(folder, folder.parent / "build", [])
        size = (stack_of(image).size + 7) // 8 * 8
        note = "upper bound from the linked image, without interrupts"
    except EtxError as error:
        size, note = DEFAULT_STACK, f"assumed: {str(error).splitlines()[0]}"
    firmware = replace(firmware, needs=replace(firmware.needs, stack=size, stack_is=note))
    write_memory(folder, firmware)
    _require_room(firmware.model, firmware.needs, firmware.target.board)
    return firmware


def _run_count(options: argparse.Namespace) -> int:
    from etx_backend_arm.firmware.counts import count, table

    require_tools("counting")
    found = []
    for file in options.files:
        firmware = _firmware(Path(file), options)
        with tempfile.TemporaryDirectory(prefix="etx-count-") as scratch:
            folder = Path(scratch) / "firmware"
            _write(folder, firmware, options)
            found.append(count(folder, firmware.target.board))
    print(table(options.files, found), end="")
    return 0


def target_memory(file: str, method: str, words: list[str]) -> MemoryNeeds:
    """Return what a method takes on a target: of `etx memory --target`, without running it.

    `words` are the options that `etx firmware` has, too. Errors: EtxError as of `etx firmware`.
    """
    from etx_backend_arm.firmware.project import Case, Firmware, require_sources

    parser = argparse.ArgumentParser()
    _add_options(parser)
    options = parser.parse_args([*words, "--method", method])
    chosen, needs = _target(options), _needs(Path(file), options)
    if chosen.npu or not have_tools(BUILDING):
        return needs
    try:
        require_sources(options.sources)
    except EtxError as error:
        if options.sources is not None:
            raise
        return replace(needs, stack_is=f"assumed, not bounded: {error}")
    case = Case([], [])
    firmware = Firmware(
        Path(file), method, options.target, chosen, case, needs, options.tolerance, "Full"
    )
    with tempfile.TemporaryDirectory(prefix="etx-memory-") as scratch:
        folder = Path(scratch) / "firmware"
        _write(folder, firmware, options)
        return _bound_stack(folder, firmware).needs


def _write(folder: Path, firmware: Firmware, options: argparse.Namespace) -> None:
    from etx_backend_arm.firmware.project import package_sources, write_firmware

    folder.mkdir()
    with package_sources(options.sources) as packages:
        write_firmware(folder, firmware, packages)


def _firmware(model: Path, options: argparse.Namespace) -> Firmware:
    """Return what a firmware is written from. Errors: EtxError where there is none."""
    from etx_backend_arm.firmware.project import Case, Firmware

    chosen, needs = _target(options), _needs(model, options)
    is_library = getattr(options, "library", False)
    from etx_backend_arm.firmware.case import make_case

    case = Case([], [])
    method = _plan(model, options)[1].name or ""
    if not is_library:
        case = make_case(model, method, options.input, options.seed)

    return Firmware(
        model=model,
        method=method,
        name=options.target,
        target=chosen,
        case=case,
        needs=needs,
        tolerance=options.tolerance,
        verification="Minimal" if options.trusted else "Full",
        is_library=is_library,
    )


def _plan(model: Path, options: argparse.Namespace) -> tuple[PteFile, ExecutionPlan]:
    """Return the file and the method that `--method` names. Errors: EtxError."""
    try:
        pte = read_pte(model)
    except ProgramError as error:
        raise EtxError(f"{model}: {error}") from error
    plans = {plan.name or "": plan for plan in pte.program.execution_plan}
    return pte, plans[choose_method(plans, options.method, str(model))]


def _needs(model: Path, options: argparse.Namespace) -> MemoryNeeds:
    """Return what the method takes. Errors: EtxError where the board has less."""
    pte, plan = _plan(model, options)
    arenas, method = planned_arenas(plan), method_arena(plan)
    temporary, hungriest = _temporary(plan, options)
    temporary = max(temporary, npu_scratch(pte, plan, options.target))
    stack = DEFAULT_STACK if options.stack is None else options.stack
    note = (
        "" if options.stack is not None else "assumed: no arm-none-eabi-g++ and cmake to bound it"
    )
    if getattr(options, "library", False):
        stack, note = 0, "that of your build"
    size = model.stat().st_size
    places: list[Place] = []
    if temporary and hungriest in RULES and (arena := _arena(pte, plan.name or "")):
        places = place_temporary(plan, arena)
        temporary = max(place.size for place in places)
        arenas[1] = max(arenas[1], *(place.at + place.size for place in places))
    needs = MemoryNeeds(arenas, method, temporary, stack, size, hungriest, note, tuple(places))
    _require_room(model, needs, _target(options).board)
    return needs


def _arena(pte: PteFile, method: str) -> Arena | None:
    """Return a method's first arena."""
    arenas = (arena for each in memory_of(pte) if each.method == method for arena in each.arenas)
    return next((arena for arena in arenas if arena.memory_id == 1), None)


def _temporary(plan: ExecutionPlan, options: argparse.Namespace) -> tuple[int, str]:
    """Return the bytes of scratch and whose they are."""
    if options.temp is not None:
        return options.temp, "given"
    known = kernel_temporary(plan)
    names = {operator_name(plan, i) for i in range(len(plan.operators))}
    if plan.delegates:
        return max(DEFAULT_TEMP, *known.values(), 0), "assumed for delegates: see --temp"
    if others := sorted(n for n in names if not n.startswith(("cortex_m::", *WITHOUT_SCRATCH))):
        return max(DEFAULT_TEMP, *known.values(), 0), f"assumed for {', '.join(others)}: see --temp"
    hungriest = max(known, key=lambda name: known[name], default="")
    return known.get(hungriest, 0), hungriest


def _require_room(model: Path, needs: MemoryNeeds, board: Board) -> None:
    """Errors: EtxError where a memory of the board has less."""
    sizes = {board.bank(0): needs.beside_arenas()}
    for mem_id, size in needs.arenas.items():
        bank = board.bank(mem_id)
        sizes[bank] = sizes.get(bank, 0) + size
    for (name, memory), size in sizes.items():
        if size > memory.size:
            raise EtxError(
                f"{model} needs {size:,} bytes of {name.upper()} and {board.name} has "
                f"{memory.size:,}:\n{needs.table()}"
            )
