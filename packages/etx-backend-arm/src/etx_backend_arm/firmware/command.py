# SPDX-License-Identifier: BSD-3-Clause
"""The commands `etx firmware` and `etx count`."""

from __future__ import annotations

import argparse
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etx_schema._generated.program import ExecutionPlan
from etx_schema.calls import choose_method
from etx_schema.errors import EtxError, ProgramError
from etx_schema.inspect.arenas import Arena
from etx_schema.inspect.memory import memory_of
from etx_schema.numbers import whole
from etx_schema.operator_names import operator_name
from etx_schema.outputs import OutputFolder
from etx_schema.pte import PteFile
from etx_schema.pte_reader import read_pte
from etx_schema.stopping import replace_folder, scratch_folder, stopping

from etx_backend_arm.firmware.boards import read_board
from etx_backend_arm.firmware.build import BUILDING, build_firmware, have_tools, require_tools
from etx_backend_arm.firmware.floats import float_calls
from etx_backend_arm.firmware.image import (
    Case,
    Firmware,
    Image,
    Model,
    require_own_state,
    state_of,
)
from etx_backend_arm.firmware.memory import MemoryNeeds, method_arena, planned_arenas
from etx_backend_arm.firmware.naming import given_files, name_models
from etx_backend_arm.firmware.npu import npu_scratch
from etx_backend_arm.firmware.room import require_room
from etx_backend_arm.firmware.scratch import RULES, Place, kernel_temporary, place_temporary
from etx_backend_arm.firmware.stack import stack_of
from etx_backend_arm.firmware.static_shapes import require_static
from etx_backend_arm.firmware.targets import TARGETS, Target, target

if TYPE_CHECKING:
    from etx_backend_arm.firmware.counts import Counts

DEFAULT_TEMP = 16384
DEFAULT_STACK = 4096
LEAST_STACK = 256
BUILD = "build"
"""The folder in a project where it is built, so that ccache finds what projects have alike."""
SEMIHOSTING = "semihosting"
WITHOUT_SCRATCH = (
    "executorch_prim::",
    "etx::view_at",
    "aten::view_copy",
    "aten::relu",
    "aten::permute_copy",
)
"""Operators besides those of `cortex_m::` whose kernels allocate nothing on any target."""


def register(subparsers: Any) -> None:
    """Add the command `etx firmware`."""
    parser = subparsers.add_parser(
        "firmware",
        help="write a CMake project for a microcontroller",
        description="Write a CMake project that runs a model on a Cortex-M: the core, the kernels "
        "that the file calls, the model, startup code and a linker script. It needs "
        "arm-none-eabi-g++; ctest runs it in QEMU and compares with this machine's runtime. "
        "Several files, or a file's methods, are one image with the kernels once, a test of each, "
        "and a header and a namespace by each one's name. "
        "Written again, a project keeps its main.cpp.",
        epilog="examples: etx firmware model.pte --target cortex-m55 -o firmware; "
        "etx firmware words=a.pte b.pte --share-arenas --target cortex-m4 -o firmware",
    )
    parser.add_argument("files", nargs="+", metavar="[NAME=]FILE", help="a .pte file")
    parser.add_argument(
        "-o",
        "--output",
        type=OutputFolder,
        required=True,
        metavar="DIR",
        help="a folder of its own",
    )
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
    _add_image_options(parser)
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
    parser.add_argument("--method", metavar="NAME", help="(forward, or the only one)")
    _add_options(parser)
    parser.set_defaults(run=_run_count)


def _add_image_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--method", action="append", metavar="NAME", help="one of several (all methods)"
    )
    parser.add_argument(
        "--share-arenas",
        action="store_true",
        help="of several models, of which one runs at a time: one memory for all, but their state",
    )


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", required=True, metavar="CPU[+NPU]", help=", ".join(TARGETS))
    parser.add_argument(
        "--board", metavar="FILE", help="a .json file with a board's memories (one of QEMU)"
    )
    parser.add_argument(
        "--input", action="append", default=[], metavar="FILE", help="of the test: .npy, .npz, .bin"
    )
    parser.add_argument("--seed", type=whole(0), default=0, help="of random inputs (0)")
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
    parser.add_argument(
        "--model-at",
        metavar="ADDRESS",
        help="where the file lies when the image starts, instead of in it: 0x60000000; or "
        "semihosting: it is read into RAM through a debugger or emulator",
    )
    parser.add_argument("--sources", metavar="DIR", help="a folder with the packages' sources")


@stopping()
def _run(options: argparse.Namespace) -> int:
    folder = Path(options.output)
    from etx_backend_arm.firmware.headers import HEADER

    _target(options)
    if options.library and options.size:
        raise EtxError("--size is of an image, and --library makes none: give one of them")
    if options.size:
        require_tools("--size", BUILDING)
    if folder.exists() and not (folder / HEADER).is_file():
        raise EtxError(f"{folder} exists and was not written by etx firmware: give another folder")
    firmware = _firmware(options.files, options)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder(f".{folder.name}-", folder.parent) as scratch:
        work = scratch / "firmware"
        _write(work, firmware, options)
        if (folder / "main.cpp").is_file() and not firmware.is_library:
            shutil.copyfile(folder / "main.cpp", work / "main.cpp")
        if _is_bounded(options, firmware) and have_tools(BUILDING):
            firmware = _bound_stack(work, firmware)
        sizes = _sizes(work, firmware) if options.size else ""
        shutil.rmtree(work / BUILD, ignore_errors=True)
        replace_folder(work, folder)
    print(f"{folder}: firmware for {options.target}\n{firmware.image.table()}{sizes}", end="")
    return 0


def _sizes(folder: Path, firmware: Firmware) -> str:
    from etx_backend_arm.firmware.sizes import size_table

    build_firmware(folder, folder / BUILD, [])
    return "\n" + size_table(folder / BUILD / "firmware.map", firmware)


def _target(options: argparse.Namespace) -> Target:
    """Return the target with its board. Errors: EtxError where there is no such one."""
    found = target(options.target)
    for name, least in (("temp", 0), ("stack", LEAST_STACK)):
        given = getattr(options, name)
        if given is not None and given < least:
            raise EtxError(f"--{name} {given}: expected bytes, at least {least}")
    if not 0 <= options.tolerance < math.inf:
        raise EtxError(f"--tolerance {options.tolerance}: expected a finite number, at least 0")
    if options.board is None:
        return found
    board = read_board(Path(options.board))
    if found.npu is not None:
        raise EtxError("--board has no memory of an NPU's simulator: leave it out, or the NPU")
    return replace(found, board=board)


def _is_bounded(options: argparse.Namespace, firmware: Firmware) -> bool:
    """Tell whether the stack is to be what the image may take."""
    return options.stack is None and not (firmware.target.npu or firmware.is_library)


def _bound_stack(
    folder: Path, firmware: Firmware, build: str = BUILD, words: Sequence[str] = ()
) -> Firmware:
    """Build the firmware in `folder` and give it the stack that it may take.

    `build` is a folder in it, `words` are options of CMake. What is sorted lies in RAM.
    """
    from etx_backend_arm.firmware.project import write_memory

    try:
        image = build_firmware(folder, folder / build, words)
        size = (stack_of(image, firmware.image.ram()).size + 7) // 8 * 8
        note = "upper bound from the linked image, without interrupts"
    except EtxError as error:
        size, note = DEFAULT_STACK, f"assumed: {str(error).splitlines()[0]}"
    firmware = replace(firmware, image=replace(firmware.image, stack=size, stack_is=note))
    write_memory(folder, firmware)
    require_room(firmware.image, firmware.target.board)
    return firmware


def _run_count(options: argparse.Namespace) -> int:
    from etx_backend_arm.firmware.counts import table

    print(table(options.files, _counts(options.files, options)), end="")
    return 0


def target_counts(files: Sequence[str], words: list[str]) -> tuple[str, list[dict[str, Any]]]:
    """Return what files execute on an emulated target, as a table and for JSON.

    Of `etx bench --target`; `words` are options of `etx count`. Errors: EtxError as of that.
    """
    from etx_backend_arm.firmware.counts import table

    parser = argparse.ArgumentParser()
    parser.add_argument("--method")
    _add_options(parser)
    found = _counts(files, parser.parse_args(words))
    rows = [
        {"file": file, "instructions": each.total, "operators": each.operators}
        for file, each in zip(files, found, strict=True)
    ]
    return table(list(files), found), rows


@stopping()
def _counts(files: Sequence[str], options: argparse.Namespace) -> list[Counts]:
    """Count each file. Errors: EtxError where a tool is missing, or as of `etx firmware`."""
    from etx_backend_arm.firmware.counts import COUNT, THRICE, count

    require_tools("counting")
    found = []
    for file in files:
        firmware = _firmware([file], options)
        with scratch_folder("etx-count-") as scratch:
            folder = scratch / "firmware"
            _write(folder, firmware, options)
            if _is_bounded(options, firmware):
                firmware = _bound_stack(folder, firmware, COUNT, THRICE)
            found.append(count(folder, firmware.target.board, firmware.loads(str(folder))))
    return found


@stopping()
def target_memory(files: Sequence[str], words: list[str]) -> Image:
    """Return what methods take on a target: of `etx memory --target`, without running them.

    `words` are the options that `etx firmware` has, too. Errors: EtxError as of `etx firmware`.
    """
    from etx_backend_arm.firmware.project import require_sources

    parser = argparse.ArgumentParser()
    _add_image_options(parser)
    _add_options(parser)
    options = parser.parse_args(words)
    firmware = _firmware(files, options, has_tests=False)
    if firmware.target.npu or not have_tools(BUILDING):
        return firmware.image
    try:
        require_sources(options.sources)
    except EtxError as error:
        if options.sources is not None:
            raise
        return replace(firmware.image, stack_is=f"assumed, not bounded: {error}")
    with scratch_folder("etx-memory-") as scratch:
        folder = scratch / "firmware"
        _write(folder, firmware, options)
        return _bound_stack(folder, firmware).image


def _write(folder: Path, firmware: Firmware, options: argparse.Namespace) -> None:
    from etx_backend_arm.firmware.project import package_sources, write_firmware

    folder.mkdir()
    with package_sources(options.sources) as packages:
        write_firmware(folder, firmware, packages)


def _firmware(
    files: Sequence[str], options: argparse.Namespace, has_tests: bool = True
) -> Firmware:
    """Return what a firmware is written from. Errors: EtxError where there is none."""
    from etx_backend_arm.firmware.case import make_case

    chosen = _target(options)
    rows = [
        (name, file, pte, plan)
        for name, file in given_files(files)
        for pte, plan in _plans(file, options.method)
    ]
    is_library = getattr(options, "library", False)
    if options.input and len(rows) > 1:
        raise EtxError("--input is of one model, and there are several: leave it out")
    names = name_models([(name, file, plan.name or "") for name, file, _, plan in rows])
    models = []
    for name, (_, file, pte, plan) in zip(names, rows, strict=True):
        method, case = plan.name or "", Case()
        needs = _needs(file, pte, plan, options)
        if has_tests and not is_library:
            case = make_case(file, method, options.input, options.seed)
        floats = float_calls(pte, plan)
        models.append(Model(name, file, method, needs, case, floats, state_of(pte, method)))
    require_own_state(models)
    stack = DEFAULT_STACK if options.stack is None else options.stack
    note = (
        "" if options.stack is not None else "assumed: no arm-none-eabi-g++ and cmake to bound it"
    )
    if is_library:
        stack, note = 0, "that of your build"
    is_read = options.model_at == SEMIHOSTING
    if is_read and is_library:
        raise EtxError(f"--model-at {SEMIHOSTING} is of an image, and --library makes none")
    is_shared = getattr(options, "share_arenas", False)
    image = Image(tuple(models), is_shared, stack, note, is_read)
    require_room(image, chosen.board)
    return Firmware(
        options.target,
        chosen,
        image,
        options.tolerance,
        "Minimal" if options.trusted else "Full",
        is_library,
        None if options.model_at is None or is_read else _address(options.model_at),
    )


def _address(text: str) -> int:
    """Return an address in 32 bits. Errors: EtxError for another text."""
    try:
        at = int(text, 0)
    except ValueError:
        at = -1
    if not 0 <= at < 1 << 32 or at % 16:
        raise EtxError(
            f"--model-at {text}: expected a multiple of 16, such as 0x60000000, or {SEMIHOSTING}"
        )
    return at


def _plans(file: Path, asked: str | list[str] | None) -> list[tuple[PteFile, ExecutionPlan]]:
    """Return the file with each method that is asked for, by default all. Errors: EtxError."""
    try:
        pte = read_pte(file)
    except ProgramError as error:
        raise EtxError(f"{file}: {error}") from error
    plans = {plan.name or "": plan for plan in pte.program.execution_plan}
    names = [asked] if isinstance(asked, str) else asked or list(plans)
    return [(pte, plans[choose_method(plans, name, str(file))]) for name in dict.fromkeys(names)]


def _needs(
    file: Path, pte: PteFile, plan: ExecutionPlan, options: argparse.Namespace
) -> MemoryNeeds:
    """Return what a method takes. Errors: EtxError where it cannot be firmware."""
    require_static(file, pte, plan)
    arenas, method = planned_arenas(plan), method_arena(plan)
    temporary, hungriest = _temporary(file, plan, options)
    try:
        temporary = max(temporary, npu_scratch(pte, plan, options.target))
    except EtxError as error:
        raise EtxError(f"{file}: {error}") from error
    places: list[Place] = []
    if temporary and hungriest in RULES and (arena := _arena(pte, plan.name or "")):
        places = place_temporary(plan, arena)
        temporary = max(place.size for place in places)
        arenas[1] = max(arenas[1], *(place.at + place.size for place in places))
    size = file.stat().st_size
    return MemoryNeeds(arenas, method, temporary, size, hungriest, tuple(places))


def _arena(pte: PteFile, method: str) -> Arena | None:
    """Return a method's first arena."""
    arenas = (arena for each in memory_of(pte) if each.method == method for arena in each.arenas)
    return next((arena for arena in arenas if arena.memory_id == 1), None)


def _temporary(file: Path, plan: ExecutionPlan, options: argparse.Namespace) -> tuple[int, str]:
    """Return the bytes of scratch and whose they are."""
    from etx_backend_arm.firmware.case import measure_temporary

    if options.temp is not None:
        return options.temp, "given"
    known = kernel_temporary(plan)
    names = {operator_name(plan, i) for i in range(len(plan.operators))}
    if plan.delegates:
        return max(DEFAULT_TEMP, *known.values(), 0), "assumed for delegates: see --temp"
    if others := sorted(n for n in names if not n.startswith(("cortex_m::", *WITHOUT_SCRATCH))):
        of, least = ", ".join(others), max(known.values(), default=0)
        found = measure_temporary(file, plan.name or "", options.input, options.seed)
        if found is None:
            return max(DEFAULT_TEMP, least), f"assumed for {of}: see --temp"
        return max(found, least), f"measured on this machine, for {of}"
    hungriest = max(known, key=lambda name: known[name], default="")
    return known.get(hungriest, 0), hungriest
