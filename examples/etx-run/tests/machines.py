# SPDX-License-Identifier: BSD-3-Clause
"""The machines that etx-run is built for and the emulators that stand in for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
BUILT = (
    "-DETX_KERNELS_OPTIMIZE=-Og",
    "-DETX_KERNELS_LEVEL=base",
    "-DCMAKE_UNITY_BUILD=ON",
)
"""How etx-run is built here: what compiles soonest."""
BUILDS = HERE.parents[1] / ".build" / "machines"


@dataclass(frozen=True)
class Machine:
    """A toolchain file, the programs it needs, how to start what it makes."""

    name: str
    toolchain: str | None
    tools: tuple[str, ...]
    packages: tuple[str, ...]
    board: str | None = None
    emulator: tuple[str, ...] = ()

    def command(self, program: Path, arguments: list[str]) -> list[str]:
        """Return the command that runs etx-run in the working folder."""
        if self.board is not None:
            escaped = (word.replace(",", ",,") for word in ("etx-run", *arguments))
            words = ",".join(f"arg={word}" for word in escaped)
            semihosting = f"enable=on,target=native,{words}"
            options = ("-nographic", "-monitor", "none", "-serial", "null", *COUNTED)
            image = ("-M", self.board, "-kernel", str(program))
            return ["qemu-system-arm", *image, *options, "-semihosting-config", semihosting]
        if self.name == "wasi":
            return [sys.executable, str(HERE / "tests" / "wasi.py"), str(program), *arguments]
        return [*self.emulator, str(program), *arguments]


# The clock is the number of instructions: 32 ns for each.
COUNTED = ("-icount", "shift=5")
ARM = ("gcc-arm-none-eabi", "libstdc++-arm-none-eabi-newlib", "qemu-system-arm")
MACHINES = (
    Machine("host", None, (), ()),
    Machine(
        "cortex-m55", "cortex-m55", ("arm-none-eabi-g++", "qemu-system-arm"), ARM, "mps3-an547"
    ),
    Machine("cortex-m4", "cortex-m4", ("arm-none-eabi-g++", "qemu-system-arm"), ARM, "mps2-an386"),
    Machine(
        "aarch64",
        "aarch64",
        ("aarch64-linux-gnu-g++", "qemu-aarch64"),
        ("g++-aarch64-linux-gnu", "qemu-user"),
        emulator=("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"),
    ),
    Machine(
        "riscv64",
        "riscv64",
        ("riscv64-linux-gnu-g++", "qemu-riscv64"),
        ("g++-riscv64-linux-gnu", "qemu-user"),
        emulator=("qemu-riscv64", "-L", "/usr/riscv64-linux-gnu"),
    ),
    Machine(
        "wasi",
        "wasi",
        ("clang++-14", "wasm-ld-14"),
        (
            "clang-14",
            "lld-14",
            "wasi-libc",
            "libc++-14-dev-wasm32",
            "libc++abi-14-dev-wasm32",
            "libclang-rt-14-dev-wasm32",
        ),
    ),
)


def missing(machine: Machine) -> list[str]:
    """Return the programs of a machine that are not installed."""
    return [tool for tool in machine.tools if shutil.which(tool) is None]


def build(machine: Machine, suffix: str = "", *options: str) -> Path:
    """Configure and build etx-run in a folder that is kept; return the program."""
    folder = BUILDS / f"{machine.name}{suffix}"
    build_with(machine, HERE, folder, [*BUILT, *options])
    (program,) = (p for p in folder.iterdir() if p.stem == "etx-run" and p.suffix != ".map")
    return program


def build_with(
    machine: Machine, source: Path, folder: Path, options: list[str], target: str = "all"
) -> None:
    """Configure and build a project with the compiler of a machine."""
    absent = missing(machine)
    if absent:
        packages = " ".join(machine.packages)
        raise FileNotFoundError(
            f"{machine.name} needs {', '.join(absent)}: sudo apt-get install {packages}"
        )
    bin_folder = Path(sys.executable).parent
    path = os.pathsep.join((str(bin_folder), os.environ["PATH"]))
    options = [*options, f"-DPython_EXECUTABLE={sys.executable}"]
    if machine.toolchain is not None:
        file = HERE / "toolchains" / f"{machine.toolchain}.cmake"
        options.append(f"-DCMAKE_TOOLCHAIN_FILE={file}")
    for command in (
        ["cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja", *options],
        ["cmake", "--build", str(folder), "-j2", "--target", target],
    ):
        done = subprocess.run(
            command,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-4000:]}")


def main() -> None:
    """Print the Debian packages that are missing, one a line."""
    packages = (package for machine in MACHINES if missing(machine) for package in machine.packages)
    print(*dict.fromkeys(packages), sep="\n")


if __name__ == "__main__":
    main()
