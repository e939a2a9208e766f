# SPDX-License-Identifier: BSD-3-Clause
"""How many instructions each operator of a firmware executes in QEMU: exact, and not cycles."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path

from etx_schema.errors import EtxError
from etx_schema.stopping import scratch_folder

from etx_backend_arm.firmware.boards import Board
from etx_backend_arm.firmware.build import build_firmware, require_tools, run_tool

COUNT = "count"
"""The folder in a project in which its image is built."""
THRICE = ("-DETX_FIRMWARE_ITERATIONS=3",)
PLUGIN = Path(__file__).parent / "emulator" / "instructions.c"
KERNEL = re.compile(
    r"^(\w+) \w (?:\w+ )*etx::(?:Boxed<.*>::(?:run\(|call<)|portable::run_selected<)", re.MULTILINE
)
EXECUTE = re.compile(r"^(\w+) \w etx::Method::execute\(\)$", re.MULTILINE)


@dataclass(frozen=True)
class Counts:
    """Instructions of one inference, and of each operator it calls, in order.

    An operator's are those from its kernel's first instruction to that of the next operator; the
    last one's reach to the next inference.
    """

    total: int
    operators: tuple[tuple[str, int], ...]


def count(
    folder: Path, board: Board, loads: Sequence[str] = (), options: Sequence[str] = ()
) -> Counts:
    """Build a project of etx firmware in it, for three inferences, and count the second's.

    `loads` are words for QEMU, of files that are not linked, `options` those of CMake.
    Errors: EtxError when a tool is missing, or the board returns other numbers than expected.
    """
    require_tools("counting")
    if not board.is_emulated:
        raise EtxError(f"the board {board.name} names no machine of QEMU, and counting needs one")
    image = build_firmware(folder, folder / COUNT, [*THRICE, *options])
    names = _kernels(image, board)
    with scratch_folder() as scratch:
        plugin, written = scratch / "instructions.so", scratch / "counts"
        run_tool(["cc", "-O2", "-shared", "-fPIC", "-o", str(plugin), str(PLUGIN)])
        begin = _inference(image)
        marks = ":".join(f"{address:x}" for address in (begin, *names))
        emulator = ["qemu-system-arm", "-M", board.name, "-kernel", str(image), "-nographic"]
        emulator += ["-monitor", "none", "-serial", "null", "-icount", "shift=5"]
        semihosting = ["-semihosting-config", "enable=on,target=native"]
        plugins = ["-plugin", f"{plugin},to={written},marks={marks}"]
        run_tool([*emulator, *semihosting, *loads, *plugins])
        lines = [line.split() for line in written.read_text().splitlines()]
    marked = [(int(line[0], 16), int(line[1])) for line in lines if len(line) == 2]
    loading = next((i for i, (address, _) in enumerate(marked) if address == begin), 0)
    calls = [(names[address], at) for address, at in marked[loading:] if address != begin]
    size = len(calls) // 3
    if size == 0 or [name for name, _ in calls] != 3 * [name for name, _ in calls[:size]]:
        raise EtxError(
            f"{folder}: the emulator saw {len(calls)} calls of kernels in three inferences, and "
            "counting needs the same ones in each"
        )
    ends = [number for _, number in calls[size + 1 : 2 * size + 1]]
    second = calls[size : 2 * size]
    operators = tuple((n, end - at) for (n, at), end in zip(second, ends, strict=True))
    return Counts(ends[-1] - second[0][1], operators)


def compare(before: Counts, after: Counts, tolerance: float) -> list[str]:
    """Return the operators that moved by more than `tolerance`, a line each, the total first."""
    rows = [("total", before.total, after.total)]
    if [n for n, _ in before.operators] != [n for n, _ in after.operators]:
        return [*_moved(rows, 0), "the operators are others than before"]
    pairs = zip(before.operators, after.operators, strict=True)
    rows += [(f"{i:3} {n}", x, y) for i, ((n, x), (_, y)) in enumerate(pairs)]
    return _moved(rows, tolerance)


def table(files: list[str], counts: list[Counts]) -> str:
    """Return instructions by operator: a row an operator, a column a file.

    Equal operators of files, in their order, have a row together; of two files the change is told.
    """
    width = max(12, *(len(Path(file).name) for file in files)) + 1
    lines = [" " * 52 + "".join(f"{Path(file).name:>{width}}" for file in files)]
    totals: list[int | None] = [each.total for each in counts]
    rows = [*aligned(counts), ("one inference", totals)]
    for i, (name, cells) in enumerate(rows):
        label = f"{i:3} {name:48}" if i + 1 < len(rows) else f"{name:52}"
        numbers = "".join(f"{'' if n is None else format(n, ','):>{width}}" for n in cells)
        lines.append((label + numbers + _change(cells)).rstrip())
    return "\n".join(lines) + "\n(instructions in QEMU, not cycles)\n"


def aligned(counts: Sequence[Counts]) -> list[tuple[str, list[int | None]]]:
    """Return the operators of several files in one order: what is not in a file is None there."""
    rows: list[tuple[str, list[int | None]]] = []
    for done, each in enumerate(counts):
        names = [name for name, _ in each.operators]
        merged: list[tuple[str, list[int | None]]] = []
        matcher = SequenceMatcher(None, [name for name, _ in rows], names, autojunk=False)
        for kind, i, i_end, j, j_end in matcher.get_opcodes():
            if kind == "equal":
                pairs = zip(rows[i:i_end], each.operators[j:j_end], strict=True)
                merged += [(name, [*cells, number]) for (name, cells), (_, number) in pairs]
            else:
                merged += [(name, [*cells, None]) for name, cells in rows[i:i_end]]
                merged += [(n, [*[None] * done, number]) for n, number in each.operators[j:j_end]]
        rows = merged
    return rows


def _change(cells: list[int | None]) -> str:
    known = [number for number in cells if number is not None]
    if len(known) != 2 or len(cells) != 2:
        return ""
    before, after = known
    return f"{(after - before) / max(before, 1):>+9.1%}" if after != before else f"{'=':>9}"


def _moved(rows: list[tuple[str, int, int]], tolerance: float) -> list[str]:
    return [
        f"{name}: {before:,} -> {after:,} ({(after - before) / max(before, 1):+.1%})"
        for name, before, after in rows
        if abs(after - before) > tolerance * before
    ]


def _inference(image: Path) -> int:
    """Return the first instruction of an inference; what kernels do before it is to be loaded."""
    symbols = run_tool(["arm-none-eabi-nm", "-C", str(image)])
    (found,) = EXECUTE.findall(symbols)
    return int(found, 16) & ~1


def _kernels(image: Path, board: Board) -> dict[int, str]:
    """Return the name of each kernel by the address of its first instruction."""
    symbols = run_tool(["arm-none-eabi-nm", "-C", str(image)])
    found = {int(address, 16) & ~1 for address in KERNEL.findall(symbols)}
    with scratch_folder() as scratch:
        flat = scratch / "text"
        copy = ["arm-none-eabi-objcopy", "-O", "binary", "-j", ".text"]
        run_tool([*copy, str(image), str(flat)])
        text = flat.read_bytes()
    words = struct.unpack(f"<{len(text) // 4}I", text[: len(text) // 4 * 4])
    names = {}
    for before, word in pairwise(words):
        start = before - board.flash.origin
        if word & 1 and word & ~1 in found and 0 < start < len(text):
            names[word & ~1] = text[start : text.index(b"\0", start)].decode("ascii", "replace")
    return names
