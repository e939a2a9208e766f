# SPDX-License-Identifier: BSD-3-Clause
"""The processors that firmware is written for, and the emulated board of each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from etx_schema.errors import EtxError

from etx_backend_arm.firmware.boards import Board, Memory
from etx_backend_arm.firmware.npu import NPUS


@dataclass(frozen=True)
class Target:
    """A processor: options of the compiler, a board to run on, and the NPU beside it."""

    options: str
    board: Board
    npu: str | None = None


KIB = 1 << 10
MIB = 1 << 20
MPS2 = (Memory(0x00000000, 4 * MIB), Memory(0x20000000, 4 * MIB))
AN385, AN386, AN500 = (Board(f"mps2-an{number}", *MPS2) for number in (385, 386, 500))
AN505 = Board("mps2-an505", Memory(0x10000000, 4 * MIB), Memory(0x38000000, 4 * MIB))
AN547 = Board(
    "mps3-an547",
    flash=Memory(0x00000000, 512 * KIB),
    ram=Memory(0x21000000, 4 * MIB),
    npu=Memory(0x60000000, 64 * MIB),
)

TARGETS = {
    "cortex-m0plus": Target("-mcpu=cortex-m0plus -mfloat-abi=soft", AN386),
    "cortex-m3": Target("-mcpu=cortex-m3 -mfloat-abi=soft", AN385),
    "cortex-m4": Target("-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16", AN386),
    "cortex-m7": Target("-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16", AN500),
    "cortex-m33": Target("-mcpu=cortex-m33 -mfloat-abi=hard -mfpu=fpv5-sp-d16", AN505),
    "cortex-m55": Target("-mcpu=cortex-m55 -mfloat-abi=hard", AN547),
}


def target(name: str) -> Target:
    """Return a target such as `cortex-m55` or `cortex-m55+ethos-u55-128` by name.

    Errors: EtxError with the names there are.
    """
    processor, plus, npu = name.partition("+")
    if processor not in TARGETS:
        raise EtxError(f"unknown target {name!r}: expected one of {', '.join(TARGETS)}")
    found = TARGETS[processor]
    if not plus:
        return found
    if npu not in NPUS or found.board.npu is None:
        known = [f"{cpu}+NPU" for cpu, each in TARGETS.items() if each.board.npu]
        raise EtxError(
            f"unknown target {name!r}: expected {' or '.join(known)}, NPU one of {', '.join(NPUS)}"
        )
    return replace(found, npu=npu)
